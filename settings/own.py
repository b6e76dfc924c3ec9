"""What one layer says in the sections of ours, with the names that existing homes use read as our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hermes.errors import Problem
from hermes.settings.hints import ELSEWHERE, did_you_mean, mistyped_section
from hermes.settings.layers import Keys, Layer
from hermes.settings.schema import OWN, SECTIONS, Retention, Timeouts

_PREFETCH: Keys = ("memory", "external_prefetch_timeout")
_TOOLSETS: tuple[Keys, ...] = (("disabled_toolsets",), ("agent", "disabled_toolsets"))
_PLUGIN_OWNED = frozenset({"memory", "plugins"})
"""Sections where a key that holds a mapping belongs to the plugin of that name."""


@attrs.frozen
class Own:
    """The part of a layer that is ours; *renamed* leads from our key to the one that the layer has."""

    layer: Layer
    sections: Mapping[str, Mapping[Any, Any]]
    renamed: Mapping[Keys, Keys]
    wrong: tuple[Problem, ...]
    """Sections of ours that are no mapping."""

    def problem(self, keys: Keys, what: str, *, fatal: bool = True) -> Problem:
        """A mistake at *keys*, under the name that stands in the layer."""
        for ours, theirs in self.renamed.items():
            if keys[: len(ours)] == ours:
                keys = theirs
        return self.layer.problem(keys, what, fatal=fatal)

    def has(self, keys: Keys) -> bool:
        """Whether this layer decides the value at *keys*: it says it, or has no mapping where it would be."""
        node: Any = self.sections
        for key in keys:
            if not isinstance(node, Mapping):
                return True
            if key not in node:
                return False
            node = node[key]
        return True


def own_part(layer: Layer) -> Own:
    """The sections of ours in *layer*; one that is written with nothing below it is not there."""
    sections: dict[str, dict[Any, Any]] = {}
    renamed: dict[Keys, Keys] = {}
    wrong = []
    for name in OWN:
        value = layer.data.get(name)
        if name == "model" and isinstance(value, str):
            sections[name], renamed["model", "name"] = {"name": value}, ("model",)
        elif isinstance(value, Mapping):
            sections[name] = dict(value)
        elif value is not None:
            wrong.append(
                layer.problem((name,), f"expected a mapping (lines of `key: value` below it), {found(value)}")
            )
    _read_model(sections, renamed)
    _read_prefetch(sections, renamed)
    _read_toolsets(layer, sections, renamed)
    return Own(layer, sections, renamed, tuple(wrong))


def found(value: object) -> str:
    """What a value is, for a person; texts and numbers are shown, and only as much as one can read."""
    if value is None:
        return "found nothing"
    if isinstance(value, bool):
        return f"found {str(value).lower()}"
    if isinstance(value, int | float):
        return f"found the number {str(value)[:40]}"
    if isinstance(value, str):
        return f"found the text {value if len(value) <= 40 else value[:37] + '...'!r}"
    if isinstance(value, Mapping):
        return "found a mapping"
    return "found a list" if isinstance(value, list | tuple) else f"found a {type(value).__name__}"


def fields_of(section: str) -> frozenset[str]:
    """The keys of ours in *section*."""
    return _FIELDS[section]


def unknown(own: Own) -> Iterator[Problem]:
    """Every key that nothing reads, each with what it was most likely meant to be."""
    yield from own.layer.notes
    for name in own.layer.data:
        if name not in OWN and (hint := mistyped_section(name)):
            yield own.layer.problem((name,), f"nothing reads this section{hint}", fatal=False)
    for section, values in own.sections.items():
        if section not in SECTIONS:
            continue
        for key, value in values.items():
            if (below := _NESTED.get((section, key))) and isinstance(value, Mapping):
                yield from _unknown_keys(own, (section, key), value, below)
            elif key not in _FIELDS[section] and not _belongs_elsewhere(section, key, value):
                what = f"unknown key{did_you_mean(key, _FIELDS[section])}"
                yield own.problem((section, key), what, fatal=False)


def split(section: str, values: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Mapping[Any, Any]]]:
    """What is ours in a section, and what belongs to plugins, by their name."""
    ours = {key: value for key, value in values.items() if key in _FIELDS[section]}
    if section not in _PLUGIN_OWNED:
        return ours, {}
    return ours, {
        k: v for k, v in values.items() if k not in ours and isinstance(k, str) and isinstance(v, Mapping)
    }


def _belongs_elsewhere(section: str, key: object, value: object) -> bool:
    """A key of another host, or of a plugin (written out, or still empty)."""
    return key in ELSEWHERE[section] or (
        section in _PLUGIN_OWNED and (value is None or isinstance(value, Mapping))
    )


def _unknown_keys(
    own: Own, above: Keys, values: Mapping[Any, Any], known: frozenset[str]
) -> Iterator[Problem]:
    for key in values:
        if key not in known:
            yield own.problem((*above, key), f"unknown key{did_you_mean(key, known)}", fatal=False)


def _read_model(sections: dict[str, dict[Any, Any]], renamed: dict[Keys, Keys]) -> None:
    model = sections.get("model", {})
    if isinstance(model.get("default"), str) and "name" not in model:
        model["name"] = model["default"]
        renamed["model", "name"] = ("model", "default")


def _read_prefetch(sections: dict[str, dict[Any, Any]], renamed: dict[Keys, Keys]) -> None:
    memory = sections.get("memory", {})
    value = memory.get(_PREFETCH[1])
    timeouts = memory.get("timeouts")
    if value is None or not isinstance(timeouts, Mapping | None) or "prefetch" in (timeouts or {}):
        return
    memory["timeouts"] = {**(timeouts or {}), "prefetch": value}
    renamed["memory", "timeouts", "prefetch"] = _PREFETCH


def _read_toolsets(layer: Layer, sections: dict[str, dict[Any, Any]], renamed: dict[Keys, Keys]) -> None:
    """What any of the names turns off is off."""
    listed = sections.get("tools", {}).get("disabled")
    if not isinstance(listed, list | None):
        return
    names = list(listed or [])
    source: Keys = ()
    for keys in _TOOLSETS:
        value: Any = layer.data
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            source = source or keys
            more = value if isinstance(value, list) else [n.strip() for n in str(value).split(",")]
            names += [name for name in more if name not in names]
    if source:
        sections.setdefault("tools", {})["disabled"] = names
        if not listed:
            renamed["tools", "disabled"] = source


def _field_names(schema: type[Any]) -> frozenset[str]:
    made = {"providers", "provider_timeouts", "by_name"}  # filled from what belongs to plugins
    return frozenset(field.name for field in attrs.fields(schema)) - made


_FIELDS = {name: _field_names(schema) for name, schema in SECTIONS.items()}
_NESTED = {
    ("memory", "timeouts"): _field_names(Timeouts),
    ("local", "retention"): _field_names(Retention),
}
