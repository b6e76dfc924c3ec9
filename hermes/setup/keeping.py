"""Putting the answers of a setup where they belong, and saying where that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from hermes import dotenv
from hermes.paths import ProfilePaths
from hermes.setup.fields import Field
from hermes.setup.places import Answers, place_of
from hermes.setup.undo import Undo

SaveConfig = Callable[[dict[str, Any]], None]
"""Gives the answers to the provider, which keeps them itself."""
ChangeSettings = Callable[[Mapping[Any, Any], Sequence[tuple[str, ...]]], object]
"""Sets and removes keys in the profile's ``config.yaml``."""


@attrs.frozen
class Saved:
    """Where the answer to one field is kept."""

    field: str
    name: str
    """The variable, the dotted key of the settings, or the key that the provider is given."""
    where: str
    """The file, or who it was given to."""
    changed: bool
    """Whether a file is another than before."""


def keep(
    provider: str,
    paths: ProfilePaths,
    answers: Answers,
    undo: Undo,
    *,
    save_config: SaveConfig,
    change_settings: ChangeSettings,
) -> str:
    """Write *answers*: ``.env``, then what the provider keeps itself, then ``config.yaml``.

    Returns where the provider has put its part, empty where it has none. Raises what the writers raise; what
    was written until then is for *undo*.
    """
    if answers.dotenv:
        dotenv.set_values(paths.dotenv, answers.dotenv)
    own = ""
    if answers.provider is not None:
        before = set(undo.changed())
        save_config(dict(answers.provider))
        own = ", ".join(str(path) for path in undo.changed() if path not in before)
    values = {("memory", provider, key): value for key, value in answers.config.items()}
    if values:
        change_settings(
            {keys: value for keys, value in values.items() if value is not None},
            [keys for keys, value in values.items() if value is None],
        )
    return own


def report(
    provider: str,
    fields: Sequence[Field],
    given: Mapping[str, Any],
    answers: Answers,
    paths: ProfilePaths,
    own: str,
) -> tuple[Saved, ...]:
    """Where each answer in *given* is now; *own* is what ``keep`` returned."""
    in_dotenv = dotenv.read(paths.dotenv)
    found = []
    for field in fields:
        if given.get(field.key) is None:
            continue
        place = place_of(provider, field, keeps=answers.provider is not None)
        match place.kind:
            case "dotenv":
                where = str(paths.dotenv) if place.name in in_dotenv else "the environment"
                found.append(Saved(field.key, place.name, where, place.name in answers.dotenv))
            case "provider":
                found.append(Saved(field.key, place.name, own or f"given to {provider}", bool(own)))
            case "config":
                name = f"memory.{provider}.{place.name}"
                found.append(Saved(field.key, name, str(paths.config), place.name in answers.config))
    return tuple(found)
