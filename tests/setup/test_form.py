"""The form while it is filled in: values in and out, no terminal."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import AnswerRefused, AnswersMissing, UsageError
from hermes.setup import Form, Question, fields_of
from hermes.setup.form import fill

SCHEMA = [
    {"key": "api_key", "secret": True, "required": True},
    {"key": "mode", "choices": ["cloud", "own"], "default": "cloud"},
    {"key": "url", "when": {"mode": "own"}, "required": True},
    {"key": "auto", "default": False},
    {"key": "depth", "default": 0, "minimum": 0},
    {"key": "note"},
]


def form(schema: Any = SCHEMA, **current: Any) -> Form:
    """A form over *schema* with what is stored."""
    return Form(fields_of(schema)[0], current)


def asked(start: Form, answers: dict[str, Any]) -> tuple[Form, list[str]]:
    """*start* filled in by a person who gives *answers*, and the keys in the order that they were asked."""
    keys: list[str] = []

    def ask(question: Question, error: str) -> Any:
        assert not error
        keys.append(question.field.key)
        return answers.get(question.field.key, "")

    return fill(start, {}, ask), keys


def test_one_question_after_the_other() -> None:
    """Each answer gives a new form with the next question; after the last there is none."""
    start = form(SCHEMA[:2])
    first = start.question()
    assert first is not None
    assert first.field.key == "api_key"
    after = start.answered("k-1")
    assert start.answers == {}
    second = after.question()
    assert second is not None
    assert (second.field.key, second.default) == ("mode", "cloud")
    done = after.answered("own")
    assert done.question() is None
    assert done.values() == {"api_key": "k-1", "mode": "own"}


def test_an_empty_answer_is_the_default_or_what_is_stored() -> None:
    """Enter takes the value in brackets: what is stored before the default; False and 0 count."""
    done, _ = asked(form(api_key="old", depth="3"), {})
    assert done.values() == {"api_key": "old", "mode": "cloud", "auto": False, "depth": 3}


def test_stored_values_that_the_field_does_not_take_are_passed_over() -> None:
    """A stored text where a number is wanted is not offered: the default is."""
    done, _ = asked(form(api_key="k", depth="deep", auto="false"), {})
    assert done.values()["depth"] == 0
    assert done.values()["auto"] is False


@pytest.mark.parametrize(("mode", "is_asked"), [("cloud", False), ("own", True)])
def test_when(mode: str, is_asked: bool) -> None:
    """A field with a condition is asked exactly where the other answer is that one."""
    _, keys = asked(form(), {"api_key": "k", "mode": mode, "url": "u"})
    assert ("url" in keys) is is_asked


def test_a_condition_on_a_switch_and_on_a_later_field() -> None:
    """Conditions compare typed answers, and wait for a field that stands further down."""
    schema = [
        {"key": "early", "when": {"late": "true"}},
        {"key": "late", "type": "boolean"},
        {"key": "never", "when": {"other": 1}},
        {"key": "other", "type": "integer", "when": {"never": 1}},
    ]
    assert asked(form(schema), {"late": "yes", "early": "x"})[1] == ["late", "early"]
    assert asked(form(schema), {"late": "no"})[1] == ["late"]


def test_default_from() -> None:
    """The default follows another answer; where the map has nothing, the field's own default counts."""
    schema = [
        {"key": "llm", "choices": ["openai", "groq", "own"]},
        {
            "key": "model",
            "default": "any",
            "default_from": {"field": "llm", "map": {"openai": "gpt", "groq": "ll"}},
        },
    ]
    assert asked(form(schema), {"llm": "groq"})[0].values()["model"] == "ll"
    assert asked(form(schema), {"llm": "own"})[0].values()["model"] == "any"
    assert asked(form(schema, model="mine"), {"llm": "groq"})[0].values()["model"] == "mine"


def test_a_required_field_takes_no_empty_answer() -> None:
    """An empty answer to a required field is refused, and the form goes on as it was."""
    with pytest.raises(AnswerRefused, match="an answer is needed"):
        form().answered("")
    with pytest.raises(AnswerRefused, match="an answer is needed"):
        form(api_key="old").emptied()


def test_a_refused_answer_is_asked_again_with_the_reason() -> None:
    """The person is told why an answer was not taken, and asked once more."""
    answers = iter(["", "", "k"])
    errors: list[str] = []

    def ask(question: Question, error: str) -> Any:
        errors.append(error)
        return next(answers)

    assert fill(form(SCHEMA[:1]), {}, ask).values() == {"api_key": "k"}
    assert errors == ["", "an answer is needed", "an answer is needed"]


def test_nobody_to_ask() -> None:
    """Without a person, each field that is missing is named with the option that gives it, all at once."""
    schema = [*SCHEMA, {"key": "team", "required": True}]
    with pytest.raises(AnswersMissing) as missing:
        fill(form(schema), {"mode": "own", "depth": "-1"})
    assert missing.value.missing == (
        "--secret api_key=env:NAME",
        "--field url=VALUE",
        "--field team=VALUE",
    )
    assert missing.value.refused == ("depth",)
    assert "depth: expected 0 or more" in str(missing.value)


def test_what_is_given_is_not_asked() -> None:
    """Answers that came with the command are typed like any other, and the person is asked for the rest."""
    keys: list[str] = []

    def ask(question: Question, error: str) -> Any:
        keys.append(question.field.key)
        return ""

    done = fill(form(api_key="k"), {"auto": "yes", "depth": "4"}, ask)
    assert keys == ["api_key", "mode", "note"]
    assert (done.answers["auto"], done.answers["depth"]) == (True, 4)


def test_an_answer_that_is_given_and_refused_stops_before_the_end() -> None:
    """A given answer that cannot be taken is an error, never a question."""
    with pytest.raises(AnswersMissing, match="depth: expected a whole number"):
        fill(form(api_key="k"), {"depth": "deep"}, lambda question, error: "")


def test_an_empty_value_takes_out_what_is_stored() -> None:
    """A key that is given without a value is left empty, and not filled from what is stored."""
    done = fill(form(api_key="k", note="old"), {"note": ""})
    assert done.answers["note"] is None
    assert "note" not in done.values()


@pytest.mark.parametrize(
    ("given", "says"),
    [({"regoin": "x"}, "no field 'regoin'"), ({"url": "x"}, "url is asked only where mode is own")],
)
def test_a_key_that_is_not_asked(given: dict[str, str], says: str) -> None:
    """A mistyped key, and one whose condition does not hold, are errors: nothing given is dropped silently."""
    with pytest.raises(UsageError, match=says):
        fill(form(api_key="k"), given)


def test_did_you_mean() -> None:
    """A mistyped key says what was most likely meant, and which fields there are."""
    with pytest.raises(UsageError) as wrong:
        fill(form(api_key="k"), {"dept": "1"})
    assert "did you mean 'depth'?" in wrong.value.next_step
