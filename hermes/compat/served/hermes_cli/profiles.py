"""The profiles below the root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hermes.compat import current

_DEFAULT = "default"


@dataclass(frozen=True)
class ProfileInfo:
    """One profile."""

    name: str
    path: Path
    is_default: bool


def get_active_profile_name() -> str:
    """The name of the profile that the plugin runs for."""
    return current.host().profile_name()


def list_profiles() -> list[ProfileInfo]:
    """All of them, ``default`` first."""
    return [
        ProfileInfo(name, get_profile_dir(name), name == _DEFAULT) for name in current.host().list_profiles()
    ]


def get_profile_dir(name: str) -> Path:
    """The home of the profile *name*. Raises ValueError for what is no name."""
    root = Path(current.host().root())
    if name == _DEFAULT:
        return root
    if not name or Path(name).name != name or name.startswith("."):
        raise ValueError(f"{name!r} is no name of a profile")
    return root / "profiles" / name
