"""Where the profile lies."""

from __future__ import annotations

import os
from contextvars import Token
from pathlib import Path

from hermes.compat import current


def get_hermes_home() -> Path:
    """The home of the profile, or the one that was set over it in this context."""
    return current.home()


def set_hermes_home_override(path: str | Path | None) -> Token[str | None]:
    """Have ``get_hermes_home`` answer *path* in this context; None for the profile's own again.

    Settings and secrets stay those of the profile: of another home they cannot be reached.
    """
    return current.home_override().set(None if path is None else str(path))


def reset_hermes_home_override(token: Token[str | None]) -> None:
    """Undo the ``set_hermes_home_override`` that gave *token*."""
    current.home_override().reset(token)


def get_hermes_home_override() -> str | None:
    """The home that was set over the profile's in this context."""
    return current.home_override().get()


def hermes_home_key(home: str | Path | None = None) -> str:
    """One text for *home* (default: that of now), however its path is written."""
    return os.path.normcase(os.path.realpath(home or current.home()))


def profile_name_for_home(home: str | Path | None = None) -> str:
    """The name of the profile whose home that is; ``custom`` where it is none of this root."""
    key, root = Path(hermes_home_key(home)), Path(hermes_home_key(get_default_hermes_root()))
    if key == Path(hermes_home_key(current.host().home())):
        return current.host().profile_name()
    if key == root:
        return "default"
    return key.name if key.parent == root / "profiles" else "custom"


def get_default_hermes_root() -> Path:
    """The root that the profiles share."""
    return Path(current.host().root())


def display_hermes_home() -> str:
    """The home, for a person: with ``~`` for their own folder."""
    home = current.home()
    try:
        return f"~/{home.relative_to(Path.home())}"
    except (ValueError, RuntimeError):  # elsewhere, or a person without a folder
        return str(home)


def get_config_path() -> Path:
    """The settings file in the home."""
    return current.home() / "config.yaml"


def get_env_path() -> Path:
    """The file with the secrets in the home."""
    return current.home() / ".env"
