"""From plain values to the frozen settings: by the declared type, strictly, every mistake in one pass.

``"false"`` is never True, None is never ``"None"``, 3.9 is never 3. A value that can only come as text (the
environment, ``.env``, ``--set``) is converted; one from a file must have its type already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import (
    AttributeValidationNote,
    ClassValidationError,
    IterableValidationError,
    IterableValidationNote,
)

from hermes import amounts
from hermes.secret import Secret
from hermes.settings.layers import FromText, Keys
from hermes.settings.own import found, split
from hermes.settings.schema import SECTIONS, Duration, MemorySettings, PluginSettings, Size, Timeouts

Mistake = tuple[Keys, str]
"""Where, and what was expected there."""

_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TEXT_WORDS = {**_WORDS, "1": True, "0": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_LONGEST = 100 * 366 * 86400.0
_LARGEST = 1 << 62


class ExpectedError(ValueError):
    """A value is not what its key declares; the message says what was expected and never shows a secret."""


def convert(sections: Mapping[str, Mapping[Any, Any]]) -> tuple[dict[str, Any], list[Mistake]]:
    """The settings of every section, and every mistake. A section with a mistake is missing in the first."""
    converted: dict[str, Any] = {}
    mistakes: list[Mistake] = []
    for name, schema in SECTIONS.items():
        ours, owned = split(name, sections.get(name, {}))
        try:
            value = CONVERTER.structure(ours, schema)
        except ClassValidationError as exc:
            mistakes += [((name, *keys), what) for keys, what in _flatten(exc)]
            value = None
        if name == "memory":
            value, more = _with_providers(value, owned)
            mistakes += more
        if value is not None:
            converted[name] = (
                attrs.evolve(value, by_name=plain(owned)) if isinstance(value, PluginSettings) else value
            )
    return converted, mistakes


def convert_text(keys: Keys, text: str) -> Any:
    """*text* as the declared type of *keys* has it, in the plain form that a file holds; KeyError if none is.

    A duration or a size stays as it was written, unless it is a bare number. Raises ExpectedError.
    """
    schema: Any = SECTIONS.get(keys[0]) if keys else None
    for key in keys[1:]:
        if not (isinstance(schema, type) and attrs.has(schema)):
            raise KeyError(key)
        schema = _types(schema)[key]
    if schema is None or (isinstance(schema, type) and attrs.has(schema)):
        raise KeyError(keys)
    value = CONVERTER.structure(FromText(text), schema)
    if schema in (Duration, Size):
        return text if not _NUMBER.fullmatch(text) else int(value) if value == int(value) else value
    return list(value) if isinstance(value, tuple) else value


def plain(value: Any) -> Any:
    """*value* with copies of its mappings and lists, and ordinary texts in them."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, FromText) else value


def _with_providers(
    memory: MemorySettings | None, owned: Mapping[str, Mapping[Any, Any]]
) -> tuple[MemorySettings | None, list[Mistake]]:
    """*memory* with what belongs to each provider. Other keys below its ``timeouts`` are the provider's."""
    mistakes: list[Mistake] = []
    limits: dict[str, Timeouts] = {}
    known = set(_types(Timeouts))
    for name, values in owned.items():
        said = values.get("timeouts")
        ours = (
            {key: value for key, value in said.items() if key in known} if isinstance(said, Mapping) else {}
        )
        if not ours:
            continue
        try:
            CONVERTER.structure(ours, Timeouts)
        except ClassValidationError as exc:
            mistakes += [(("memory", name, "timeouts", *keys), what) for keys, what in _flatten(exc)]
        else:
            base = attrs.asdict(memory.timeouts) if memory else {}
            limits[name] = CONVERTER.structure({**base, **ours}, Timeouts)
    if memory is None:
        return None, mistakes
    return attrs.evolve(memory, providers=plain(owned), provider_timeouts=limits), mistakes


def _flatten(exc: BaseException, above: Keys = ()) -> Iterator[Mistake]:
    if not isinstance(exc, cattrs.BaseValidationError):
        yield above, str(exc).removeprefix(f"{above[-1]} " if above else "")  # the key says its name already
        return
    for inner in exc.exceptions:
        note = next((n for n in getattr(inner, "__notes__", ()) if isinstance(n, _NOTES)), None)
        key = note.name if isinstance(note, AttributeValidationNote) else note.index if note else None
        yield from _flatten(inner, above if key is None else (*above, key))


_TEXTS: Any = tuple[str, ...]
_NOTES = (AttributeValidationNote, IterableValidationNote)


def _noted(exc: BaseException, note: str) -> Any:
    exc.__notes__ = [*getattr(exc, "__notes__", []), note]
    return exc


def _types(schema: type[Any]) -> dict[str, Any]:
    attrs.resolve_types(schema)
    return {field.name: field.type for field in attrs.fields(schema)}


def _class_hook(schema: type[Any], converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    """Structures every field and checks its bounds before it gives up: no mistake hides another."""
    attrs.resolve_types(schema)
    fields = attrs.fields(schema)

    def structure(data: Any, _: Any) -> Any:
        if not isinstance(data, Mapping):
            raise ExpectedError(f"expected a mapping (lines of `key: value` below it), {found(data)}")
        values: dict[str, Any] = {}
        mistakes = []
        for field in fields:
            if field.name not in data:
                continue
            try:
                values[field.name] = converter.structure(data[field.name], field.type)
                if field.validator:
                    field.validator(None, field, values[field.name])
            except (ValueError, cattrs.BaseValidationError) as exc:
                mistakes.append(_noted(exc, AttributeValidationNote(field.name, field.name, field.type)))
        if mistakes:
            raise ClassValidationError(schema.__name__, mistakes, schema)
        return schema(**values)

    return structure


def _to_bool(value: Any, _: Any) -> bool:
    words = _TEXT_WORDS if isinstance(value, FromText) else _WORDS
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ExpectedError(f"expected true or false, {found(value)}")


def _to_int(value: Any, _: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return value
    if isinstance(value, FromText) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    raise ExpectedError(f"expected a whole number, {found(value)}{_in_quotes(value)}")


def _to_float(value: Any, _: Any) -> float:
    number = _number(value)
    if number is None:
        raise ExpectedError(f"expected a number, {found(value)}{_in_quotes(value)}")
    return number


def _to_duration(value: Any, _: Any) -> float:
    seconds = _number(value)
    if seconds is None and isinstance(value, str):
        seconds = amounts.seconds(value)
    if seconds is None:
        raise ExpectedError(
            f"expected seconds, or text like 90s, 15m, 12h or 30d, {found(value)}{_in_quotes(value)}"
        )
    if abs(seconds) > _LONGEST:
        raise ExpectedError("expected at most a hundred years")
    return seconds


def _to_size(value: Any, _: Any) -> int:
    size = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str):
        size = amounts.size(value)
        if size is None and isinstance(value, FromText) and _WHOLE.fullmatch(value.strip()):
            size = int(value)
    if size is None or abs(size) > _LARGEST:
        raise ExpectedError(f"expected bytes, or text like 500MB or 1GiB, {found(value)}{_in_quotes(value)}")
    return size


def _to_text(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        quotes = (
            f"; write it in quotes: '{value}'"
            if isinstance(value, int) and not isinstance(value, bool)
            else ""
        )
        raise ExpectedError(f"expected text, {found(value)}{quotes}")
    return _clean(value)


def _to_secret(value: Any, _: Any) -> Secret:
    if not isinstance(value, str):
        raise ExpectedError("expected text")  # not even its kind in more detail: it may be the secret
    return Secret(_clean(value))


def _to_texts(value: Any, _: Any) -> tuple[str, ...]:
    if isinstance(value, FromText):
        return tuple(part for part in (_clean(item.strip()) for item in value.split(",")) if part)
    if not isinstance(value, list | tuple):
        raise ExpectedError(f"expected a list of texts, {found(value)}")
    texts, mistakes = [], []
    for index, item in enumerate(value):
        try:
            texts.append(_to_text(item, str))
        except ExpectedError as exc:
            mistakes.append(_noted(exc, IterableValidationNote(str(index), index, str)))
    if mistakes:
        raise IterableValidationError("a list of texts", mistakes, tuple)
    return tuple(texts)


def _is_choice(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _to_choice(value: Any, choices: Any) -> Any:
    options = get_args(choices)
    if isinstance(value, bool) and {"on", "off"} <= set(options):  # YAML 1.1 reads these words as a boolean
        return "on" if value else "off"
    if isinstance(value, str) and value in options:
        return str(value)
    raise ExpectedError(f"expected one of {', '.join(options)}, {found(value)}")


def _number(value: Any) -> float | None:
    if isinstance(value, FromText) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) <= 1e308 and math.isfinite(value) else None


def _in_quotes(value: Any) -> str:
    number = isinstance(value, str) and not isinstance(value, FromText) and _NUMBER.fullmatch(value.strip())
    return "; write it without quotes" if number else ""


def _clean(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ExpectedError("expected text, found half of a character (a lone surrogate)") from None
    return str(text)


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=True)
    for kind, hook in (
        (bool, _to_bool),
        (int, _to_int),
        (float, _to_float),
        (str, _to_text),
        (Secret, _to_secret),
    ):
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_factory(
        lambda kind: attrs.has(kind) and kind is not Secret, lambda kind, conv: _class_hook(kind, conv)
    )
    converter.register_structure_hook_func(_is_choice, _to_choice)
    converter.register_structure_hook_func(lambda kind: kind == _TEXTS, _to_texts)
    converter.register_structure_hook_func(lambda kind: kind == Duration, _to_duration)
    converter.register_structure_hook_func(lambda kind: kind == Size, _to_size)
    return converter


CONVERTER = _make_converter()
