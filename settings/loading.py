"""From layers to the settings of a profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hermes.errors import ConfigError, Problem
from hermes.profiles import Profile
from hermes.settings.layers import FromText, Keys, Layer, deep_merge, layers_of, walk
from hermes.settings.own import Own, own_part, unknown
from hermes.settings.schema import OWN, SECTIONS, Settings


def load(
    profile: Profile, *, environ: Mapping[str, str], overrides: Mapping[str, Any] | Sequence[str] = ()
) -> Settings:
    """The settings of *profile*: its layers read, merged and converted.

    *environ* is the snapshot of the environment, *overrides* what ``--set`` says, or a mapping whose keys may
    be dotted. Raises ConfigError with every mistake, StoreUnavailable for a file that cannot be read.
    """
    return settings_of(profile, layers_of(profile, environ=environ, overrides=overrides))


def settings_of(profile: Profile, layers: Sequence[Layer]) -> Settings:
    """The settings that *layers* make. Raises ConfigError."""
    from hermes.settings.convert import convert
    from hermes.settings.profile_settings import ProfileSettings

    parts = [own_part(layer) for layer in layers]
    store = ProfileSettings(lambda: [(part.layer.kind, part.layer.source, part.sections) for part in parts])
    converted, mistakes = convert(store.sections())
    wrong = [problem for part in parts for problem in part.wrong]
    wrong += [locate(parts, keys, what) for keys, what in mistakes]
    if wrong:
        raise ConfigError(wrong)
    return Settings(
        profile=profile,
        configured=any(layer.kind == "profile" for layer in layers),
        merged=_merged(parts, converted),
        warnings=tuple(problem for part in parts for problem in unknown(part)),
        **converted,
    )


def locate(parts: Sequence[Own], keys: Keys, what: str) -> Problem:
    """The mistake at *keys* in the topmost layer that says something there."""
    part = next((part for part in reversed(parts) if part.has(keys)), parts[0])
    return part.problem(keys, what)


def _merged(parts: Iterable[Own], converted: Mapping[str, Any]) -> dict[Any, Any]:
    """Everything that any layer says, merged; what came as text for a key of ours in its own type."""
    from hermes.settings.convert import plain

    merged: dict[Any, Any] = {}
    for part in parts:
        data = {key: value for key, value in part.layer.data.items() if not (key in OWN and value is None)}
        merged = deep_merge(merged, data)
        for keys in part.renamed:
            if isinstance(merged.get(keys[0], {}), Mapping):  # `model: name` stays the text that it is
                merged = deep_merge(merged, _nested(keys, walk(part.sections, keys)))
    for section, schema in converted.items():
        if section in SECTIONS and isinstance(merged.get(section), dict):
            _type_texts(merged[section], schema)
    if isinstance(model := merged.get("model"), dict):
        model.pop("api_key", None)
    result: dict[Any, Any] = plain(merged)
    return result


def _type_texts(values: dict[Any, Any], typed: Any) -> None:
    for key, value in values.items():
        if isinstance(value, dict) and key in ("timeouts", "retention"):
            _type_texts(value, getattr(typed, key))
        elif isinstance(value, FromText) and hasattr(typed, key):
            known = getattr(typed, key)
            values[key] = list(known) if isinstance(known, tuple) else known


def _nested(keys: Keys, value: Any) -> dict[Any, Any]:
    for key in reversed(keys):
        value = {key: value}
    result: dict[Any, Any] = value
    return result
