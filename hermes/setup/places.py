"""Where each answer of a setup is kept, and what is there now."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from hermes import files
from hermes.errors import AnswerRefused, StoreUnavailable, UsageError
from hermes.overlay import variables_for
from hermes.setup.fields import Field


@attrs.frozen
class Place:
    """Where the answer to one field is kept."""

    kind: Literal["dotenv", "provider", "config"]
    name: str
    """The variable in ``.env``, or the key that the provider or ``config.yaml`` knows it by."""


@attrs.frozen
class Answers:
    """The answers of a setup, by where they go. In ``dotenv`` and ``config``, only what changes."""

    dotenv: Mapping[str, str | None] = attrs.field(factory=dict, repr=False)
    """None removes the variable."""
    provider: Mapping[str, Any] | None = None
    """Everything that is no secret, for a provider that keeps it itself; None for one that does not."""
    config: Mapping[str, Any] = attrs.field(factory=dict)
    """By key below ``memory.<provider>``; None removes it."""


def place_of(provider: str, field: Field, *, keeps: bool) -> Place:
    """Where *field* of *provider* goes; *keeps* says that the provider has a ``save_config`` of its own.

    Raises ``UsageError`` for a variable that no plugin is ever given from a ``.env``.
    """
    if field.secret or (field.env_var and not keeps):
        name = field.env_var or re.sub(r"[^A-Z0-9]", "_", f"{provider}_{field.key}".upper())
        if variables_for("", Path(), {name: ""}).ignored:
            raise UsageError(
                f"{field.key} would be kept as {name}, which is not taken from a .env",
                next_step="tell the author of the provider",
            )
        return Place("dotenv", name)
    return Place("provider" if keeps else "config", field.key)


def sort(
    provider: str,
    fields: Sequence[Field],
    answers: Mapping[str, Any],
    current: Mapping[str, Any],
    *,
    keeps: bool,
) -> Answers:
    """Each of *answers* (None for a field left empty) with where it goes. *current* is what is stored."""
    dotenv: dict[str, str | None] = {}
    config: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for field in fields:
        value = answers.get(field.key)
        place = place_of(provider, field, keeps=keeps)
        if place.kind == "provider":
            if value is not None:
                own[field.key] = value
        elif field.key in answers and place.kind == "config":
            stored = current.get(field.key)
            if value != stored or type(value) is not type(stored):
                config[place.name] = value
        elif field.key in answers and value != _typed(field, current.get(field.key)):
            dotenv[place.name] = None if value is None else _as_text(value)
    return Answers(dotenv, own if keeps else None, config)


def current(
    provider: str,
    fields: Sequence[Field],
    *,
    keeps: bool,
    variables: Mapping[str, str],
    section: Mapping[Any, Any],
    home: Path,
) -> dict[str, Any]:
    """What is stored for *fields* now, as it stands there.

    *variables* are those of ``.env`` and, behind it, of the environment; *section* is ``memory.<provider>``
    of the settings. Raises ``StoreUnavailable`` where a file of the provider is damaged: a setup would write
    over it.
    """
    own = _own_file(provider, home) if keeps else {}
    found: dict[str, Any] = {}
    for field in fields:
        place = place_of(provider, field, keeps=keeps)
        sources: list[tuple[Mapping[Any, Any], str]] = [(own, field.key), (section, field.key)]
        if place.kind == "dotenv":
            sources = [(variables, place.name)]
        elif field.env_var:
            sources.append((variables, field.env_var))
        values = [source[name] for source, name in sources if source.get(name) not in (None, "")]
        if values:
            found[field.key] = values[0]
    return found


def tail(secret: str) -> str:
    """What may be shown of *secret*: its last four characters where that is a small part of it."""
    return f"****{secret[-4:]}" if len(secret) >= 12 else "****"


def _own_file(provider: str, home: Path) -> Mapping[str, Any]:
    """What stands in the file that providers commonly keep: ``<name>.json``, or ``<name>/config.json``."""
    names = dict.fromkeys((provider, provider.replace("-", "_")))
    for path in [home / file for name in names for file in (f"{name}.json", f"{name}/config.json")]:
        content = files.read_bytes(path)
        if content is None or not content.strip():
            continue
        try:
            data = json.loads(content)
        except ValueError as exc:
            raise StoreUnavailable(
                path,
                f"it is no JSON that can be read ({exc}), and a setup would write over it",
                next_step="mend it, or move it out of the way; nothing was saved",
            ) from None
        if isinstance(data, Mapping):
            return data
    return {}


def _typed(field: Field, stored: Any) -> Any:
    try:
        return None if stored is None else field.convert(stored)
    except AnswerRefused:
        return None


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
