"""The fields of a provider's form, and answers typed by them."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import AnswerRefused
from hermes.setup.fields import Field, fields_of


def field(**said: Any) -> Field:
    """The one field of a schema."""
    (found,), problems = fields_of([{"key": "it", **said}])
    assert problems == ()
    return found


@pytest.mark.parametrize(
    ("said", "answer", "value"),
    [
        ({"type": "boolean"}, "false", False),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, False, False),
        ({"default": False}, "on", True),
        ({"default": "false", "choices": ["true", "false"]}, "false", False),
        ({"type": "integer"}, "0", 0),
        ({"type": "integer"}, " -3 ", -3),
        ({"default": 0}, "7", 7),
        ({"type": "number"}, "0.5", 0.5),
        ({"type": "number"}, "1e-3", 0.001),
        ({"default": 0.5}, "2", 2),
        ({"type": "text"}, "0", "0"),
        ({}, "1.10", "1.10"),
        ({"default": "5"}, "6", "6"),
        ({"type": "path"}, "~/x", "~/x"),
        ({"choices": ["us-east", "eu-west"]}, "EU-west", "eu-west"),
        ({"choices": [1, 2, 3]}, "2", 2),
        ({"type": "integer", "choices": ["256", "512"]}, "512", 512),
    ],
)
def test_an_answer_has_the_type_of_its_field(said: dict[str, Any], answer: Any, value: Any) -> None:
    """A text becomes the declared type, or the one that default and choices plainly have; 'false' is False."""
    found = field(**said).convert(answer)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("said", "answer", "expected"),
    [
        ({"type": "boolean"}, "maybe", "true or false"),
        ({"type": "integer"}, "3.9", "a whole number"),
        ({"type": "integer"}, True, "a whole number"),
        ({"type": "number"}, "nan", "a number"),
        ({"type": "number"}, "1e999", "a number"),
        ({"type": "integer", "minimum": 0}, "-1", "0 or more"),
        ({"type": "integer", "maximum": 10}, "11", "10 or less"),
        ({"type": "number", "minimum": 0.5, "step": 0.25}, "0.8", "a multiple of 0.25 from 0.5"),
        ({"choices": ["a", "b"]}, "c", "one of a, b"),
        ({"secret": True}, "x\nEVIL=1", "one line"),
        ({"env_var": "NAME"}, "x\0", "one line"),
    ],
)
def test_what_a_field_does_not_take(said: dict[str, Any], answer: Any, expected: str) -> None:
    """An answer of another type, beyond a bound, off a step or none of the choices is refused with a reason."""
    with pytest.raises(AnswerRefused, match=expected) as refused:
        field(**said).convert(answer)
    assert refused.value.exit_code == 2


def test_a_refusal_never_shows_the_answer() -> None:
    """What was typed may be a secret in the wrong place: the error says the field, not the answer."""
    with pytest.raises(AnswerRefused) as refused:
        field(type="integer").convert("sk-not-a-number")
    assert "sk-not" not in str(refused.value.as_dict())


@pytest.mark.parametrize("value", [0.5, 0.75, 1.0, "1.25"])
def test_steps_count_from_the_minimum(value: Any) -> None:
    """With a minimum of 0.5 and a step of 0.25 every quarter from there is taken."""
    assert field(type="number", minimum=0.5, step=0.25).convert(value) == float(value)


@pytest.mark.parametrize("default", [False, 0, 0.0])
def test_false_and_zero_are_defaults(default: Any) -> None:
    """A default that counts as false is a default like any other."""
    assert field(default=default).default == default
    assert field(default=default).default is not None


def test_a_schema_with_mistakes_is_used_as_far_as_it_can_be() -> None:
    """A field without a key, a second one, a default out of bounds: left out, and said."""
    fields, problems = fields_of(
        [
            {"description": "nameless"},
            {"key": "a", "type": "integer", "default": 99, "maximum": 10},
            {"key": "a"},
            "text",
            {"key": "b", "when": {"nobody": 1}, "default_from": {"field": "a"}},
        ]
    )
    assert [(f.key, f.default, dict(f.when)) for f in fields] == [("a", None, {}), ("b", None, {})]
    assert [p.split()[0] for p in problems] == ["field", "the", "a", "field", "default_from"]
    assert fields_of({"a": 1})[1] == ("the form is no list of fields, it is a dict",)
