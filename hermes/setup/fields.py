"""The fields that a provider asks for: read from what its ``get_config_schema`` gives, and answers typed by them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from hermes.errors import AnswerRefused

Kind = Literal["text", "integer", "number", "boolean"]

_KINDS: Mapping[str, Kind] = {
    "integer": "integer",
    "int": "integer",
    "number": "number",
    "float": "number",
    "boolean": "boolean",
    "bool": "boolean",
}
_WORDS = {"true": True, "yes": True, "on": True, "y": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "n": False, "0": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


@attrs.frozen
class Field:
    """One question of a provider's form."""

    key: str
    description: str = ""
    kind: Kind = "text"
    secret: bool = False
    required: bool = False
    default: Any = None
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    url: str = ""
    """Where a person gets what is asked for."""
    env_var: str = ""
    when: Mapping[str, Any] = attrs.field(factory=dict)
    """Asked only where the answers to these other fields are these."""
    default_from: tuple[str, Mapping[str, Any]] | None = None
    """The field whose answer decides the default, and what it is for which answer."""

    def convert(self, answer: Any) -> Any:
        """*answer*, a text or a value, as the type of this field. Raises ``AnswerRefused``."""
        if self.choices:
            return self._choice(answer)
        if (self.secret or self.env_var) and ("\0" in str(answer) or len(f"{answer}.".splitlines()) > 1):
            raise AnswerRefused(self.key, "expected one line, as it goes into .env")
        value = _as_kind(answer, self.kind)
        if value is None:
            raise AnswerRefused(self.key, f"expected {_EXPECTED[self.kind]}")
        if self.kind in ("integer", "number"):
            self._check_bounds(value)
        return value

    def _choice(self, answer: Any) -> Any:
        typed = {str(choice): _as_kind(choice, self.kind) for choice in self.choices}
        for text, value in typed.items():
            if text == str(answer) or (value is not None and value == _as_kind(answer, self.kind)):
                return text if value is None else value
        near = [text for text in typed if text.lower() == str(answer).lower()]
        if len(near) == 1:
            return typed[near[0]]
        raise AnswerRefused(self.key, f"expected one of {', '.join(typed)}")

    def _check_bounds(self, value: float) -> None:
        if self.minimum is not None and value < self.minimum:
            raise AnswerRefused(self.key, f"expected {self.minimum:g} or more")
        if self.maximum is not None and value > self.maximum:
            raise AnswerRefused(self.key, f"expected {self.maximum:g} or less")
        if self.step:
            start = self.minimum or 0
            steps = (value - start) / self.step
            if not math.isclose(steps, round(steps), abs_tol=1e-9):
                raise AnswerRefused(self.key, f"expected a multiple of {self.step:g} from {start:g}")


_EXPECTED = {
    "text": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def fields_of(schema: Any) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """The fields of *schema*, and what is wrong with it: an item that cannot be used is left out and said."""
    fields: dict[str, Field] = {}
    problems: list[str] = []
    if not isinstance(schema, Sequence) or isinstance(schema, str):
        return (), (f"the form is no list of fields, it is a {type(schema).__name__}",)
    for place, item in enumerate(schema, 1):
        key = item.get("key") if isinstance(item, Mapping) else None
        if not isinstance(key, str) or not key:
            problems.append(f"field {place} has no key")
        elif key in fields:
            problems.append(f"{key} is asked twice; the first one counts")
        else:
            fields[key] = _field(key, item)
            problems += _problems(fields[key], item)
    return tuple(attrs.evolve(field, **_usable(field, fields)) for field in fields.values()), tuple(problems)


def _field(key: str, item: Mapping[str, Any]) -> Field:
    choices = item.get("choices")
    return Field(
        key=key,
        description=str(item.get("description") or ""),
        kind=_kind(item),
        secret=bool(item.get("secret")),
        required=bool(item.get("required")),
        default=item.get("default"),
        choices=tuple(choices) if isinstance(choices, list | tuple) else (),
        minimum=_number(item.get("minimum")),
        maximum=_number(item.get("maximum")),
        step=_number(item.get("step")),
        url=str(item.get("url") or ""),
        env_var=str(item.get("env_var") or ""),
        when=dict(item["when"]) if isinstance(item.get("when"), Mapping) else {},
        default_from=_default_from(item.get("default_from")),
    )


def _kind(item: Mapping[str, Any]) -> Kind:
    """The type that is declared, else the one that the default or the choices plainly have."""
    if item.get("type") is not None:
        return _KINDS.get(str(item["type"]).lower(), "text")
    choices = item.get("choices")
    examples = [item.get("default"), *(choices if isinstance(choices, list | tuple) else ())]
    if {str(choice).lower() for choice in examples[1:]} == {"true", "false"}:
        return "boolean"
    for kind, types in (("boolean", bool), ("integer", int), ("number", float)):
        if any(isinstance(example, types) for example in examples):
            return _KINDS[kind]
    return "text"


def _default_from(said: Any) -> tuple[str, Mapping[str, Any]] | None:
    if not isinstance(said, Mapping) or not isinstance(said.get("map"), Mapping):
        return None
    return str(said.get("field")), {str(key): value for key, value in said["map"].items()}


def _problems(field: Field, item: Mapping[str, Any]) -> Iterator[str]:
    if field.default not in (None, ""):
        try:
            field.convert(field.default)
        except AnswerRefused as exc:
            yield f"the default of {field.key} is left out: {exc.reason}"
    if item.get("default_from") and field.default_from is None:
        yield f"default_from of {field.key} is left out: expected a field and a map"


def _usable(field: Field, fields: Mapping[str, Field]) -> dict[str, Any]:
    """What a field really has: defaults that it takes, conditions on fields that there are."""
    when = {key: _taken(fields[key], value, value) for key, value in field.when.items() if key in fields}
    start = field.default_from
    if start is not None:
        start = (start[0], {answer: _taken(field, value) for answer, value in start[1].items()})
    return {"default": _taken(field, field.default), "default_from": start, "when": when}


def _taken(field: Field, value: Any, otherwise: Any = None) -> Any:
    """*value* as *field* takes it; *otherwise* where it takes it not."""
    try:
        return otherwise if value in (None, "") else field.convert(value)
    except AnswerRefused:
        return otherwise


def _as_kind(answer: Any, kind: Kind) -> Any:
    """*answer* as *kind*, None where it is none."""
    text = str(answer).strip()
    if kind == "boolean":
        return answer if isinstance(answer, bool) else _WORDS.get(text.lower())
    if kind == "text":
        return answer
    if isinstance(answer, bool):
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    if kind == "integer" or not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return float(text)


def _number(value: Any) -> float | None:
    number: float | None = None if value is None else _as_kind(value, "number")
    return number
