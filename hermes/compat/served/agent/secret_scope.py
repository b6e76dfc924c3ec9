"""The secrets of the profile, and a mapping that may be put in their place for a while."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar, Token
from pathlib import Path

from hermes.compat import current

_scope: ContextVar[Mapping[str, str] | None] = ContextVar("hermes_secret_scope", default=None)


def get_secret(name: str, default: str | None = None) -> str | None:
    """The secret called *name*: from the mapping that was put in place, else from the profile's own."""
    scope = _scope.get()
    found = current.profile().secret(name) if scope is None else scope.get(name)
    return default if found is None else found


def set_secret_scope(secrets: Mapping[str, str] | None) -> Token[Mapping[str, str] | None]:
    """Have ``get_secret`` look into *secrets* alone, in this context; None for the profile's again."""
    return _scope.set(secrets)


def reset_secret_scope(token: Token[Mapping[str, str] | None]) -> None:
    """Undo the ``set_secret_scope`` that gave *token*."""
    _scope.reset(token)


def current_secret_scope() -> Mapping[str, str] | None:
    """The mapping that was put in place in this context; None without one."""
    return _scope.get()


def build_profile_secret_scope(hermes_home: str | Path) -> dict[str, str]:
    """What the ``.env`` of the profile says. Raises Unavailable for the home of another profile."""
    token = current.home_override().set(str(hermes_home))
    try:
        return current.profile().load_env()
    finally:
        current.home_override().reset(token)


def is_multiplex_active() -> bool:
    """False: a plugin runs for one profile at a time."""
    return False
