"""``plugin.yaml``: what a plugin says of itself, read without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Manifest:
    """A plugin's metadata; *problem* says why the file could not be used, if it could not."""

    name: str = ""
    version: str = ""
    description: str = ""
    hooks: tuple[str, ...] = ()
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    problem: str = ""


def read(path: Path) -> Manifest:
    """The manifest at *path*; one that is missing or broken is empty and says so in ``problem``."""
    import yaml

    try:
        data = yaml.safe_load(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        return Manifest(problem=f"{path.name} is missing")
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        return Manifest(problem=f"{path.name}: {' '.join(str(exc).split())}")
    if not isinstance(data, Mapping):
        return Manifest(problem=f"{path.name} is not a mapping")
    known = {key: str(data.get(key) or "") for key in ("name", "version", "description")}
    hooks = data.get("hooks")
    return Manifest(
        **known,
        hooks=tuple(map(str, hooks)) if isinstance(hooks, list) else (),
        extra={str(key): value for key, value in data.items() if key not in {*known, "hooks"}},
    )
