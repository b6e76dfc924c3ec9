"""The composition root: from an environment to the wired parts of one profile.

Nothing here is global. ``Hermes()`` takes a snapshot of the environment once; ``open`` builds a container for
one profile from it, and closing gives everything back.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import attrs

from hermes import profiles

if TYPE_CHECKING:
    from hermes.context.engine import ContextEngine
    from hermes.memory.builtin import BuiltinMemoryProvider
    from hermes.memory.journal import Journal
    from hermes.memory.manager import MemoryManager
    from hermes.memory.provider import MemoryProvider
    from hermes.model.client import Model
    from hermes.paths import ProfilePaths
    from hermes.plugin_host import Catalog
    from hermes.profiles import Profile
    from hermes.secrets import Secrets
    from hermes.sessions import Sessions
    from hermes.settings import Settings


@attrs.frozen
class Hermes:
    """Opens profiles.

    >>> with Hermes().open("work") as me:                # doctest: +SKIP
    ...     me.memory_manager().prefetch_all("who is Ada?")

    *environ* is read when this object is made and never again; *home* stands for ``--home`` and *settings*
    for ``--set section.key=value``, the topmost layer of the settings.
    """

    environ: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ), repr=False)
    home: Path | None = None
    settings: Sequence[str] = ()
    overrides: Mapping[str, Any] = attrs.field(factory=dict)

    def resolve(self, profile: str | None = None, *, target: str | None = None) -> Profile:
        """The profile that would be opened; nothing is read below its home.

        With *target* the opener must exist and the target is what counts. Raises ``InvalidProfileName``,
        ``ProfileNotFound``, ``StaleActiveProfile`` or ``HomeUnusable``.
        """
        opener = profiles.resolve(self.environ, profile=profile, home=self.home)
        return opener if target is None else profiles.named(opener.root, target, chosen_by="--target-profile")

    def open(self, profile: str | None = None, *, target: str | None = None) -> OpenProfile:
        """Build the container of *profile*, or of *target* in its place; parts are made when first asked for.

        Raises what ``resolve`` raises, and ``ConfigError`` where the settings cannot be used.
        """
        return self._open(self.resolve(profile, target=target))

    def override(self, **parts: Any) -> Hermes:
        """A sibling whose containers use *parts*, in every profile it opens; this one stays as it is.

        A part is an object to hand out, or a dependency-injector provider. Raises ``TypeError`` for a name
        that the container does not have.
        """
        unknown = sorted(set(parts) - PARTS)
        if unknown:
            raise TypeError(f"no such part: {', '.join(unknown)} (there are {', '.join(sorted(PARTS))})")
        return attrs.evolve(self, overrides={**self.overrides, **parts})

    def _open(self, profile: Profile) -> OpenProfile:
        from hermes.containers.blueprint import build

        return OpenProfile(self, build(profile, self.environ, self.settings, self.overrides))


PARTS = frozenset(
    {
        "context_engine",
        "hold",
        "journal",
        "log",
        "paths",
        "plugins",
        "builtin_provider",
        "memory_manager",
        "memory_provider",
        "model",
        "secrets",
        "sessions",
        "settings",
    }
)
"""What a container holds, and what ``Hermes.override`` can replace."""


class OpenProfile:
    """The parts of one open profile; each is built on first use and is the same object from then on.

    But for the context engine, of which every conversation needs one of its own.
    """

    def __init__(self, root: Hermes, container: Any) -> None:
        self._root = root
        self._container = container
        self._lock = threading.RLock()
        self._open = True
        self._inside = _Inside(root, container, self._lock)
        container.opened.override(self._inside)

    def settings(self) -> Settings:
        """What the profile is configured with."""
        return cast("Settings", self._part("settings"))

    def settings_now(self) -> Settings:
        """The settings as its files say now; ``settings()`` stays what it was when the profile was opened.

        Raises what opening it raises.
        """
        from hermes.settings import load

        if "settings" in self._root.overrides:
            return self.settings()
        profile = self.settings().profile
        return load(profile, environ=self._root.environ, overrides=self._root.settings)

    def paths(self) -> ProfilePaths:
        """Where its files lie."""
        return cast("ProfilePaths", self._part("paths"))

    def secrets(self) -> Secrets:
        """Its ``.env``, with the environment of the start behind it."""
        return cast("Secrets", self._part("secrets"))

    def hold(self) -> None:
        """Have the profile for writing until it is closed: it can be neither deleted nor renamed meanwhile.

        Raises ``ProfileBusy`` while somebody does just that.
        """
        self._part("hold")

    def log(self) -> logging.Logger:
        """Its log, below ``logs/``."""
        return cast("logging.Logger", self._part("log"))

    def plugins(self) -> Catalog:
        """The plugins that can be chosen."""
        return cast("Catalog", self._part("plugins"))

    def journal(self) -> Journal:
        """What is still owed to the memory provider."""
        return cast("Journal", self._part("journal"))

    def builtin_provider(self) -> BuiltinMemoryProvider:
        """MEMORY.md and USER.md."""
        return cast("BuiltinMemoryProvider", self._part("builtin_provider"))

    def memory_provider(self) -> MemoryProvider | None:
        """The provider that the settings choose; None where they choose none.

        Raises ``ProviderUnavailable`` where it cannot be loaded.
        """
        return cast("MemoryProvider | None", self._part("memory_provider"))

    def memory_manager(self) -> MemoryManager:
        """The manager with the built-in provider and the chosen one registered, not yet initialised."""
        return cast("MemoryManager", self._part("memory_manager"))

    def sessions(self) -> Sessions:
        """Transcripts of its conversations."""
        return cast("Sessions", self._part("sessions"))

    def model(self) -> Model:
        """The model it talks to. Raises ModelUnavailable where the settings name none."""
        return cast("Model", self._part("model"))

    def context_engine(self) -> ContextEngine:
        """A context engine as the settings choose it: another one for each conversation."""
        return cast("ContextEngine", self._part("context_engine"))

    def target(self, profile: str) -> OpenProfile:
        """Another profile of the same root, in a container of its own with the same overrides."""
        return self._root._open(
            profiles.named(self.settings().profile.root, profile, chosen_by="--target-profile")
        )

    def close(self) -> None:
        """Close every part, dependants first; all of them, whatever one of them raises.

        Raises an ``ExceptionGroup`` of what went wrong. A second call does nothing.
        """
        from hermes.containers.blueprint import close

        with self._lock:
            if self._open:
                self._open = False
                try:
                    close(self._container)
                finally:
                    self._inside._open = False

    def _part(self, name: str) -> Any:
        # the library's thread-safe singletons share one lock across the process; this one is the profile's own
        with self._lock:
            if not self._open:
                raise RuntimeError("this profile is closed")
            return getattr(self._container, name)()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_open", False):
            warnings.warn(
                f"an open profile was never closed: {self!r}", ResourceWarning, stacklevel=2, source=self
            )

    def __repr__(self) -> str:
        return f"<OpenProfile {self._container.settings().profile.name!r}>"


class _Inside(OpenProfile):
    """The same profile for its own plugins, which ask in threads of theirs and until they are shut down.

    A part that is being built may be waiting for one of them: so they never wait for it.
    """

    def __init__(self, root: Hermes, container: Any, building: threading.RLock) -> None:
        self._root = root
        self._container = container
        self._lock = threading.RLock()
        self._open = True
        self._building = building

    def _part(self, name: str) -> Any:
        free = self._building.acquire(blocking=False)
        try:
            return super()._part(name)
        finally:
            if free:
                self._building.release()

    def __del__(self) -> None:
        """It is not what has to be closed."""
