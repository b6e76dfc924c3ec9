"""One plugin in a process that is there for one step of one check, called as the host calls it."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import attrs

from hermes.memory.coroutines import Coroutines
from hermes.memory.lanes import Lane, Limits, describe
from hermes.memory.seat import Seat
from hermes.plugin_host.context import Registered, RegistrationContext
from hermes.plugin_host.loading import LoadFailed, load
from hermes.testing.conformance.findings import Finding, Where
from hermes.testing.conformance.watch import Watch

FIRST, SECOND = "first", "second"
"""The two profiles of a check."""
SESSION = "conformance-session-1"
_OWN_FAULTS = (AttributeError, NameError, TypeError, ImportError, NotImplementedError, RecursionError)
"""Exceptions that no missing backend explains."""


class NotTried(Exception):
    """The check cannot go on here; the reason is for the person. Findings made so far are kept."""


@attrs.frozen
class Job:
    """What one process has to do. Everything in it is JSON."""

    check: str
    step: str
    """``module:function`` below ``checks``."""
    spec: dict[str, Any]
    manifest: dict[str, Any]
    folder: str
    """Where the plugin and its papers lie; empty where that is not known."""
    distribution: str
    """The package that it was installed with; empty for a folder."""
    root: str
    """An empty folder of the check's own; the surroundings of the process lie in it."""
    filled: dict[str, Any]
    """The form of the plugin, filled in: ``values``, ``config``, ``dotenv``, and the ``secrets`` in them."""
    notes: dict[str, Any]
    """What the steps before this one wrote down."""


class Bench:
    """The plugin of *job*, and what is found about it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.findings: list[Finding] = []
        self.notes: dict[str, Any] = dict(job.notes)
        self.watch = Watch(str(job.spec.get("path") or job.folder or "\0"))
        self.loop = Coroutines("hermes-coroutines")
        self.limits = Limits()
        self._host = _Host(Path(job.root))

    # -- findings ----------------------------------------------------------------------------------------

    def error(self, what: str, *, why: str, mend: str, where: Where | None = None) -> None:
        """Something that has to be mended. *where* None is the provider's class."""
        self._find("error", what, why, mend, where)

    def warning(self, what: str, *, why: str, mend: str, where: Where | None = None) -> None:
        """Something that should be mended."""
        self._find("warning", what, why, mend, where)

    def _find(
        self, severity: Literal["error", "warning"], what: str, why: str, mend: str, where: Where | None
    ) -> None:
        place = where if where and where.file else self._default_place()
        found = Finding(self.job.check, severity, what, why, mend, *place)
        if all(found.what != other.what or found.where != other.where for other in self.findings):
            self.findings.append(found)

    # -- places ------------------------------------------------------------------------------------------

    def file(self, name: str) -> Path:
        """The file *name* of the plugin, beside its code or in the folder above."""
        places = [Path(place) for place in (self.job.folder, self.job.spec.get("path"), ".") if place]
        return next((place / name for place in places if (place / name).is_file()), places[0] / name)

    def place_of(self, provider: Any, member: str) -> Where:
        """Where *member* of *provider* is defined."""
        found = inspect.getattr_static(type(provider), member, None)
        if isinstance(found, property):
            found = found.fget
        found = getattr(found, "__func__", found)
        code = getattr(inspect.unwrap(found) if callable(found) else found, "__code__", None)
        return Where(code.co_filename, code.co_firstlineno) if code else self._class_place(provider)

    def place_raised(self, error: BaseException) -> Where:
        """The innermost line of the plugin in the traceback of *error*."""
        folder = str(self.job.spec.get("path") or self.job.folder)
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
        return Where(frames[-1].filename, frames[-1].lineno or 0) if frames else Where()

    def place_running(self, lane: Lane) -> Where:
        """The line of the plugin where the thread of *lane* stands now."""
        frames = sys._current_frames()
        running = [
            frames.get(thread.ident or 0) for thread in threading.enumerate() if thread.name == lane.name
        ]
        return self.watch.place(running[0]) if running and running[0] else Where()

    def _default_place(self) -> Where:
        provider = self.registered.memory_provider if "registered" in self.__dict__ else None
        return self._class_place(provider) if provider is not None else Where(str(self.file("__init__.py")))

    def _class_place(self, provider: Any) -> Where:
        try:
            return Where(
                inspect.getsourcefile(type(provider)) or "", inspect.getsourcelines(type(provider))[1]
            )
        except (OSError, TypeError):
            return Where(str(self.file("__init__.py")))

    # -- the plugin --------------------------------------------------------------------------------------

    @cached_property
    def registered(self) -> Registered:
        """What the plugin registers, loaded once. Raises ``LoadFailed``."""
        return self.load()

    def load(self) -> Registered:
        """Load the plugin and let it register anew. Raises ``LoadFailed``."""
        from hermes.compat import finder

        ctx = RegistrationContext(self.job.spec["name"], self._host, self.job.manifest)
        finder.uninstall()
        finder.install(self._host, ctx.registered, worker=True)
        load(self.job.spec, ctx)
        if ctx.registered.memory_provider is None:
            raise LoadFailed("it registers no memory provider", str(self.file("__init__.py")))
        return ctx.registered

    def seat(self, provider: Any = None) -> Seat:
        """*provider* (default: the plugin's) where a manager would have it, not started."""
        provider = self.registered.memory_provider if provider is None else provider
        return Seat(provider, str(self.job.spec["name"]), self.limits, self.loop)

    # -- a profile ---------------------------------------------------------------------------------------

    def enter(self, profile: str) -> Path:
        """Be *profile* from now on; its home."""
        return self._host.enter(profile)

    def set_up(self, seat: Seat, home: Path) -> None:
        """Keep the answers of the form as ``hermes memory setup`` does."""
        values = self.job.filled.get("values")
        if values is not None and seat.implements("save_config"):
            seat.ask("save_config", dict(values), str(home), within=self.limits.hook)

    def start(self, profile: str = FIRST, *, session: str = SESSION, provider: Any = None) -> Seat:
        """The provider, started for *session* of *profile*. Raises ``NotTried`` where it cannot be."""
        home = self.enter(profile)
        seat = self.seat(provider)
        try:
            self.set_up(seat, home)
            available = seat.ask("is_available", within=self.limits.hook)
        except Exception as exc:
            raise NotTried(f"it cannot be set up: {describe(exc)}") from exc
        if not available:
            raise NotTried(f"it is not available although its form is filled in{self.reason(seat)}")
        try:
            self.initialize(seat, home, profile, session)
        except Exception as exc:
            raise NotTried(f"it does not start here: {describe(exc)}") from exc
        return seat

    def initialize(self, seat: Seat, home: Path, profile: str, session: str) -> None:
        """Call ``initialize`` with what a host gives. Raises what it raises."""
        facts = {
            "hermes_home": str(home),
            "platform": "cli",
            "agent_context": "primary",
            "agent_identity": profile,
        }
        seat.ask("initialize", session, within=self.limits.initialize, **facts)

    def answer(self, seat: Seat, member: str, *args: Any, **named: Any) -> Any:
        """What *member* answers, None where it raises: for what other checks tell."""
        try:
            return seat.ask(member, *args, within=self.limits.tool_call, **named)
        except Exception:  # noqa: BLE001 - a provider may raise anything
            return None

    def reason(self, seat: Seat) -> str:
        """What the provider says of why it is not available, to be put behind a sentence."""
        reason = seat.ask("unavailable_reason", within=self.limits.hook)
        return f": {reason}" if reason else ""

    def is_own_fault(self, error: BaseException) -> bool:
        """True where no missing backend explains *error*: nothing was asked of a network before it."""
        asked = self.watch.seen("network") or self.watch.seen("near")
        return isinstance(error, _OWN_FAULTS) or not asked

    def end(self, seat: Seat) -> None:
        """End the provider as a host does, and the threads of ours that called it. Raises what it raises."""
        try:
            seat.deliver("shutdown", within=self.limits.shutdown)
        finally:
            self.leave(seat)

    def leave(self, seat: Seat) -> None:
        """End the threads of ours that called *seat*."""
        for lane in (seat.turn, seat.delivery):
            lane.close()
            lane.join(1.0)
        self.loop.close(1.0)

    def lines(self, file: Path) -> list[str]:
        """The lines of *file*, none where it cannot be read."""
        try:
            return file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
        except OSError:
            return []

    def line_of(self, file: Path, matches: Callable[[str], object]) -> Where:
        """The first line of *file* that *matches*, else the file as a whole."""
        lines = self.lines(file)
        return Where(str(file), next((n for n, line in enumerate(lines, 1) if matches(line)), 0))


class _Host:
    """The host of the plugin: the profile that the process has entered, opened for each question."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "hermes"
        self._profile = FIRST

    def enter(self, profile: str) -> Path:
        """Speak for *profile* from now on; its home, made where it is missing."""
        self._profile = profile
        home = Path(self.home())
        home.mkdir(parents=True, exist_ok=True)
        os.environ["HERMES_HOME"], os.environ["HERMES_PROFILE"] = str(home), profile
        return home

    def home(self) -> str:
        """The home of the profile."""
        return str(self._root / "profiles" / self._profile)

    def profile_name(self) -> str:
        """Its name."""
        return self._profile

    def root(self) -> str:
        """The root of both profiles."""
        return str(self._root)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(*args: Any, **kwargs: Any) -> Any:
            from hermes.compat.profile_host import ProfileHost
            from hermes.containers import Hermes

            environ: Mapping[str, str] = {k: v for k, v in os.environ.items() if not k.startswith("HERMES_")}
            with Hermes(environ=environ, home=self._root).open(self._profile) as me:
                return getattr(ProfileHost(me), name)(*args, **kwargs)

        return ask
