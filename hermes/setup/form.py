"""The form of a provider while it is filled in: one question after the other, each answer typed at once."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from hermes.errors import AnswerRefused, AnswersMissing, UsageError
from hermes.setup.fields import Field


@attrs.frozen
class Question:
    """What is asked next."""

    field: Field
    default: Any = None
    """What an empty answer stands for; None for nothing."""
    kept: bool = False
    """Whether that is what is stored now."""


@attrs.frozen
class Form:
    """The fields, what is stored for them now, and the answers so far. A value: answering makes a new one."""

    fields: tuple[Field, ...]
    current: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    answers: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """By key; None for a field that is left empty."""

    def question(self) -> Question | None:
        """The next question, or None where everything is answered that is to be asked."""
        pending = [field for field in self.fields if field.key not in self.answers]
        keys = {field.key for field in pending}
        for field in pending:
            # a field that depends on a later one waits for it; two that wait for each other are never asked
            if not keys.intersection(field.when) - {field.key} and self._is_asked(field):
                return self._question(field)
        return None

    def answered(self, answer: Any = None) -> Form:
        """This form with *answer* to its question; an empty one stands for the default.

        Raises ``AnswerRefused``: it is not of the field's type, or empty where the field is required.
        """
        question = self._the_question()
        field = question.field
        value = field.convert(answer) if answer not in (None, "") else question.default
        if value is None and field.required:
            raise AnswerRefused(field.key, "an answer is needed")
        return attrs.evolve(self, answers={**self.answers, field.key: value})

    def emptied(self) -> Form:
        """This form with its question left empty, whatever is stored. Raises ``AnswerRefused`` where required."""
        field = self._the_question().field
        if field.required:
            raise AnswerRefused(field.key, "an answer is needed")
        return self.without(field.key)

    def without(self, key: str) -> Form:
        """This form with the field *key* passed over."""
        return attrs.evolve(self, answers={**self.answers, key: None})

    def values(self) -> dict[str, Any]:
        """The answers by key, without the fields that are left empty."""
        return {key: value for key, value in self.answers.items() if value is not None}

    def _the_question(self) -> Question:
        question = self.question()
        if question is None:
            raise ValueError("every question is answered")
        return question

    def _question(self, field: Field) -> Question:
        if field.key in self.current:
            try:
                return Question(field, field.convert(self.current[field.key]), kept=True)
            except AnswerRefused:
                pass  # what is stored is none of the answers that the field takes: its default counts
        return Question(field, self._default(field))

    def _default(self, field: Field) -> Any:
        other, by_answer = field.default_from or ("", {})
        found = by_answer.get(_text(self.answers.get(other)))
        return field.default if found is None else found

    def _is_asked(self, field: Field) -> bool:
        return all(_text(self.answers.get(key)) == _text(value) for key, value in field.when.items())


Ask = Callable[[Question, str], Any]
"""Gets the answer to a question from a person; the text is why the last one was not taken."""


def fill(form: Form, given: Mapping[str, str], ask: Ask | None = None) -> Form:
    """*form* filled in with the answers *given* by key, and the others by *ask*, each until it is taken.

    An empty text that is given empties the field. Without *ask* a field that is not given keeps what is stored
    or takes its default. Raises ``AnswersMissing`` with all that is missing and all that was given and cannot be
    taken, and ``UsageError`` for a key that is not asked.
    """
    _refuse_unknown(form, given)
    missing: list[str] = []
    refused: dict[str, str] = {}
    error = ""
    while (question := form.question()) is not None:
        key = question.field.key
        try:
            if key in given:
                form = form.answered(given[key]) if given[key] else form.emptied()
            else:
                form = form.answered(ask(question, error) if ask else None)
            error = ""
        except AnswerRefused as exc:
            if key not in given and ask is not None:
                error = exc.reason
                continue
            if key in given:
                refused[key] = exc.reason
            else:
                missing.append(_flag(question.field))
            form = form.without(key)
    if missing or refused:
        raise AnswersMissing(missing, refused)
    _refuse_unasked(form, given)
    return form


def _refuse_unknown(form: Form, given: Iterable[str]) -> None:
    keys = [field.key for field in form.fields]
    for key in given:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"there is no field {key!r}", next_step=f"{hint}fields: {', '.join(keys) or 'none'}"
            )


def _refuse_unasked(form: Form, given: Iterable[str]) -> None:
    conditions = {field.key: field.when for field in form.fields}
    for key in given:
        if key not in form.answers:
            only = ", ".join(f"{other} is {_text(value)}" for other, value in conditions[key].items())
            raise UsageError(
                f"{key} is asked only where {only}", next_step=f"leave {key} out, or change the other"
            )


def _flag(field: Field) -> str:
    """How *field* is answered without a terminal."""
    return f"--secret {field.key}=env:NAME" if field.secret else f"--field {field.key}=VALUE"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
