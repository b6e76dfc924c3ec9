"""Which profile the served modules speak for in this process, and what its plugin has registered."""

from __future__ import annotations

import os
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from hermes.errors import Unavailable
from hermes.plugin_host.context import Registered
from hermes.plugin_host.host import Host


@dataclass
class Serving:
    """Whom the served modules ask."""

    host: Host
    registered: Registered = field(default_factory=Registered)
    worker: bool = False
    """Whether this process is the plugin's own, with no application in it."""


_serving: Serving | None = None
_override: ContextVar[str | None] = ContextVar("hermes_home_override", default=None)


def begin(serving: Serving | None) -> None:
    """Speak for *serving* from now on; None for nobody."""
    global _serving  # a process has one set of served modules, and they have one host
    _serving = serving


def serving() -> Serving:
    """Whom the served modules ask. Raises Unavailable where nobody is there."""
    if _serving is None:
        raise Unavailable(
            "no profile is open for the host modules",
            next_step="open one: hermes.compat.finder.install, or the fixture hermes_host_modules",
        )
    return _serving


def host() -> Host:
    """The host, for what does not depend on a home. Raises Unavailable."""
    return serving().host


def home_override() -> ContextVar[str | None]:
    """The home that the code of now takes for the active one; None for that of the profile."""
    return _override


def home() -> Path:
    """The home of the profile, or the one that was set over it in this context."""
    return Path(_override.get() or host().home())


def profile() -> Host:
    """The host, for settings and secrets.

    Raises Unavailable where another home was set in this context: nothing crosses from one profile to another.
    """
    known = host()
    other = _override.get()
    if other is not None and not _same(other, known.home()):
        raise Unavailable(
            f"the settings of {other} cannot be reached from profile {known.profile_name()!r}",
            next_step="run it for that profile: hermes --target-profile NAME …",
        )
    return known


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
