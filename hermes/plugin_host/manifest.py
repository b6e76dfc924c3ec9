"""``plugin.yaml``: what a plugin says of itself, read without importing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

FILE = "plugin.yaml"
_TEXTS = ("name", "version", "description", "kind", "author")


@attrs.frozen
class Manifest:
    """A plugin's metadata; *problem* says why the file could not be used, if it could not."""

    name: str = ""
    version: str = ""
    description: str = ""
    kind: str = ""
    author: str = ""
    hooks: tuple[str, ...] = ()
    """Members of a provider, or hooks of a plugin, that it says it has."""
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    """Every other key, as it stands."""
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """What the file says, without what it leaves out, as JSON: a date in it is a text."""
        known = {key: getattr(self, key) for key in _TEXTS}
        hooks = {"hooks": list(self.hooks)} if self.hooks else {}
        said = {**{key: value for key, value in known.items() if value}, **hooks, **self.extra}
        plain: dict[str, Any] = json.loads(json.dumps(said, default=str, skipkeys=True))
        return plain

    def names(self, key: str) -> tuple[str, ...]:
        """The texts listed under *key*; where mappings are listed, their ``name``."""
        value = self.extra.get(key)
        listed = value if isinstance(value, list) else [value] if isinstance(value, str) else []
        found = (item.get("name") if isinstance(item, Mapping) else item for item in listed)
        return tuple(str(item) for item in found if item)


def read(folder: Path) -> Manifest:
    """The manifest in *folder*; one that is missing or broken is empty and says so in ``problem``.

    It is UTF-8 whatever the system's own encoding; a byte order mark and any line ends are fine.
    """
    import yaml

    path = folder / FILE
    try:
        text = path.read_bytes().decode("utf-8-sig")
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except FileNotFoundError:
        return Manifest(problem=f"{FILE} is missing")
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as exc:
        return Manifest(problem=f"{FILE} cannot be read: {_said(exc)}")
    if not isinstance(data, Mapping):
        return Manifest(problem=f"{FILE} is not a mapping")
    hooks = data.get("hooks")
    return Manifest(
        **{key: _text(data.get(key)) for key in _TEXTS},
        hooks=tuple(map(_text, hooks)) if isinstance(hooks, list) else (),
        extra={str(key): value for key, value in data.items() if key not in {*_TEXTS, "hooks"}},
    )


def _text(value: Any) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _said(exc: Exception) -> str:
    mark = getattr(exc, "problem_mark", None)
    reason = getattr(exc, "problem", None) or exc
    line = f" (line {mark.line + 1})" if mark is not None else ""
    return " ".join(str(reason).split())[:200] + line
