"""That the fields of ``get_config_schema`` can be asked for, answered and kept."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import AnswerRefused, HermesError
from hermes.memory.lanes import describe
from hermes.setup.fields import Field, fields_of
from hermes.setup.places import place_of
from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.findings import Where

_KEYS = frozenset(
    {
        *("key", "description", "type", "secret", "required", "default", "choices", "url", "env_var"),
        *("minimum", "maximum", "step", "when", "default_from"),
    }
)
_TYPES = frozenset({"text", "string", "str", "integer", "int", "number", "float", "boolean", "bool"})
_WHY = (
    "hermes memory setup asks for the fields as they stand there; what it cannot use, a person cannot answer."
)


def fields(bench: Bench) -> None:
    """Each field is well formed, and its answer has a place to go."""
    provider = bench.registered.memory_provider
    place = bench.place_of(provider, "get_config_schema")

    def say(what: str, mend: str, near: str = "") -> None:
        bench.error(what, why=_WHY, mend=mend, where=_line(bench, place, near) if near else place)

    seat = bench.seat()
    try:
        form = seat.ask("get_config_schema", within=bench.limits.hook)
        json.dumps(form)
    except Exception as exc:  # noqa: BLE001 - whatever it raises is what is wrong
        say(f"get_config_schema gives no form: {describe(exc)}", "return a list of plain mappings")
        return
    typed, problems = fields_of([] if form is None else form)
    items = (
        [item for item in form or () if isinstance(item, Mapping)] if isinstance(form, list | tuple) else []
    )
    keys = [str(item.get("key")) for item in items]
    for problem in problems:
        near = next((key for key in keys if re.search(rf"\b{re.escape(key)}\b", problem)), "")
        say(problem, "see the table of fields in the guide for plugin authors", near)
    keeps = seat.implements("save_config")
    for item in items:
        key = str(item.get("key"))
        for what, mend in (
            *_wrong(item, items),
            *_misplaced(str(bench.job.spec["name"]), item, typed, keeps),
        ):
            say(f"field {key}: {what}", mend, key)


def _wrong(item: Mapping[str, Any], items: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """What is wrong with one field, and what to do about it."""
    keys = [other.get("key") for other in items]
    for unknown in sorted(item.keys() - _KEYS):
        near = difflib.get_close_matches(str(unknown), _KEYS, n=1)
        if near:
            yield f"{unknown!r} is not known", f"did you mean {near[0]!r}?"
    if item.get("type") is not None and str(item["type"]).lower() not in _TYPES:
        yield f"the type {item['type']!r} is not known", "say text, integer, number or boolean"
    if not str(item.get("description") or "").strip():
        yield "it has no description", "say what is asked for: it is what a person reads"
    choices = item.get("choices")
    if choices is not None and (not isinstance(choices, list | tuple) or not choices):
        yield "choices is no list of answers", "list what can be chosen, or leave choices out"
    if item.get("secret") and item.get("default"):
        yield "a secret has a default", "leave the default out: a key that everybody has is none"
    bounds = [item.get("minimum"), item.get("maximum")]
    if all(isinstance(bound, int | float) for bound in bounds) and bounds[0] > bounds[1]:  # type: ignore[operator]
        yield f"the minimum {bounds[0]} is above the maximum {bounds[1]}", "exchange the two"
    if item.get("url") and not re.match(r"https?://\S+\Z", str(item["url"])):
        yield f"the url {item['url']!r} is none", "give an address that starts with https://"
    if (when := item.get("when")) is not None:
        if not isinstance(when, Mapping):
            yield "when is no mapping", "say {other_key: value}"
        else:
            for other in when:
                if other not in keys[: keys.index(item.get("key"))]:
                    yield f"when names {other!r}, which is not asked before it", "name a field further up"
    source = item.get("default_from")
    if isinstance(source, Mapping) and source.get("field") not in keys:
        yield f"default_from names {source.get('field')!r}, which is no field", "name a field of the form"


def _misplaced(
    name: str, item: Mapping[str, Any], typed: tuple[Field, ...], keeps: bool
) -> Iterator[tuple[str, str]]:
    """Why the answer cannot be kept where it belongs."""
    field = next((field for field in typed if field.key == item.get("key")), None)
    variable = item.get("env_var")
    if variable and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", str(variable)):
        yield f"env_var {variable!r} is no name of a variable", "use capital letters, digits and _"
    if field is None:
        return
    try:
        place_of(name, field, keeps=keeps)
    except HermesError as exc:
        yield exc.message, "choose another env_var, one that starts with the provider's name"
    for choice in field.choices:
        try:
            field.convert(choice)
        except AnswerRefused as exc:
            yield f"the choice {choice!r} is refused: {exc.reason}", "let every choice be of the field's type"


def _line(bench: Bench, start: Where, key: str) -> Where:
    """The line behind *start* that has *key* in quotes, else *start*."""
    lines = bench.lines(Path(start.file))
    quoted = re.compile(rf"[\"']{re.escape(key)}[\"']")
    found = (n for n, line in enumerate(lines, 1) if n >= start.line and quoted.search(line))
    return Where(start.file, next(found, start.line))
