"""Trying everything out: each check does what it speaks of, and says what to do where that failed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal
from uuid import uuid4

import attrs

from hermes.errors import HermesError, Problem
from hermes.memory.builtin import BuiltinMemory
from hermes.memory.coroutines import Coroutines
from hermes.memory.journal import JournalStats, peek
from hermes.memory.lanes import LimitSet
from hermes.memory.provider import MemoryProvider
from hermes.memory.seat import Seat
from hermes.paths import ProfilePaths
from hermes.profiles import Profile

Outcome = Literal["ok", "warning", "failed", "not tried"]

LOW_SPACE = 100 << 20
"""Bytes of free space below which a warning is given."""


@attrs.frozen
class Check:
    """One thing that was tried: what came out, and what to do about it."""

    name: str
    outcome: Outcome
    detail: str
    next_step: str = ""


def examine(
    profile: Profile,
    *,
    problems: Callable[[], list[Problem]],
    builtin: BuiltinMemory,
    choose: Callable[[], MemoryProvider | None],
    limits: LimitSet,
) -> Iterator[Check]:
    """Every check of *profile*, one after the other as each is done.

    *problems* gives the mistakes in its settings, *choose* the provider that they choose.
    """
    yield versions()
    yield command_on_path()
    yield from home(profile.paths)
    yield settings(problems)
    yield secrets(profile.paths)
    yield from builtin_memory(builtin)
    yield journal(profile.paths)
    yield from provider(profile, choose, limits)


def versions() -> Check:
    """What runs here."""
    from hermes import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    return Check("versions", "ok", f"hermes {__version__}, Python {python}, SQLite {sqlite3.sqlite_version}")


def command_on_path() -> Check:
    """Which program answers to ``hermes``."""
    found, own = shutil.which("hermes"), Path(sys.executable).with_name("hermes")
    if found is None:
        return Check("command", "warning", "no hermes on PATH", f"{sys.executable} -m hermes always works")
    if own.exists() and not own.samefile(found):
        other = f"{found} answers to hermes, not this installation ({own})"
        return Check("command", "warning", other, f"{sys.executable} -m hermes always works")
    return Check("command", "ok", found)


def home(paths: ProfilePaths) -> Iterator[Check]:
    """Whether the home can be written, who else can read it, and how much room there is."""
    if not paths.home.exists():
        yield Check("home", "ok", f"{paths.home} does not exist yet; the first write makes it")
        return
    probe = paths.home / f".doctor-{uuid4().hex}"
    try:
        probe.touch(0o600)
        probe.unlink()
    except OSError as exc:
        yield Check(
            "home", "failed", f"{paths.home} cannot be written: {exc.strerror}", "check owner and mode"
        )
    else:
        yield Check("home", "ok", f"{paths.home} can be written")
    if open_to := _open_to_others(paths.home):
        yield Check("permissions", "warning", open_to, f"chmod 700 '{paths.home}'")
    free = shutil.disk_usage(paths.home).free
    outcome: Outcome = "warning" if free < LOW_SPACE else "ok"
    yield Check("disk", outcome, f"{free >> 20:,} MiB free", "make room" if free < LOW_SPACE else "")


def settings(problems: Callable[[], list[Problem]]) -> Check:
    """Whether every settings file can be used."""
    if not (found := problems()):
        return Check("settings", "ok", "no mistakes")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    fatal = any(problem.fatal for problem in found)
    return Check("settings", "failed" if fatal else "warning", f"{found[0]}{more}", "hermes config check")


def secrets(paths: ProfilePaths) -> Check:
    """Whether ``.env`` can be read, and by whom."""
    from hermes import dotenv

    try:
        count = len(dotenv.read(paths.dotenv))
    except HermesError as exc:
        return Check("secrets", "failed", str(exc), exc.next_step)
    if not paths.dotenv.exists():
        return Check("secrets", "ok", "no .env")
    if open_to := _open_to_others(paths.dotenv):
        return Check("secrets", "warning", open_to, f"chmod 600 '{paths.dotenv}'")
    return Check("secrets", "ok", f"{count} values in {paths.dotenv}")


def builtin_memory(builtin: BuiltinMemory) -> Iterator[Check]:
    """Whether both files can be read, and what a person should know of them."""
    for usage in builtin.usage():
        name = f"built-in {usage.target}"
        if not usage.enabled:
            yield Check(name, "not tried", "it is off")
        elif usage.problem:
            yield Check(name, "failed", usage.problem, "check owner and mode")
        else:
            yield Check(name, "ok", f"{usage.entries} entries, {usage.percent} % used")
    for warning in builtin.warnings():
        yield Check("built-in", "warning", warning)


def journal(paths: ProfilePaths) -> Check:
    """What is still owed, and whether the file is sound."""
    with peek(paths.journal) as view:
        stats = view.stats() if view is not None else None
    if stats is None:
        return Check("journal", "ok", "nothing was ever owed to a provider")
    if trouble := _trouble(stats):
        return trouble
    oldest = f", the oldest {int(time.time() - stats.oldest):,} s old" if stats.oldest else ""
    return Check("journal", "ok", f"{stats.undelivered} undelivered{oldest}; mode {stats.mode}")


def _trouble(stats: JournalStats) -> Check | None:
    if stats.moved_aside:
        kept = ", ".join(map(str, stats.moved_aside))
        return Check(
            "journal", "warning", f"a damaged journal was kept: {kept}", "delete it once you are sure"
        )
    if stats.trouble:
        return Check("journal", "failed", stats.trouble, "make room, or check owner and mode")
    if stats.dead:
        return Check(
            "journal", "warning", f"{stats.dead} records are set aside", "hermes memory journal list"
        )
    return None


def provider(
    profile: Profile, choose: Callable[[], MemoryProvider | None], limits: LimitSet
) -> Iterator[Check]:
    """A turn through the provider and back: written, found, deleted, gone."""
    try:
        chosen = choose()
    except HermesError as exc:
        yield Check("provider", "failed", str(exc), exc.next_step)
        return
    if chosen is None:
        yield Check("provider", "not tried", "none is chosen", "hermes config set memory.provider local")
        return
    loop = Coroutines("hermes-doctor")
    seat = Seat(chosen, chosen.name, limits, loop)
    try:
        yield from _round_trip(seat, profile)
    except HermesError as exc:
        yield Check(f"provider {seat.name}", "failed", str(exc), exc.next_step)
    except Exception as exc:  # noqa: BLE001 - whatever a provider raises is the finding
        yield Check(f"provider {seat.name}", "failed", f"{type(exc).__name__}: {exc}", "see its README")
    finally:
        for lane in (seat.turn, seat.delivery):
            lane.close()
        loop.close(1.0)


def _round_trip(seat: Seat, profile: Profile) -> Iterator[Check]:
    name, limits = f"provider {seat.name}", seat.limits
    if not seat.ask("is_available", within=limits.hook):
        reason = seat.ask("unavailable_reason", within=limits.hook) or "it says that it is not set up"
        yield Check(name, "failed", reason, "set it up, then try again")
        return
    session = f"hermes-doctor-{uuid4().hex[:12]}"
    seat.ask(
        "initialize",
        session,
        within=limits.initialize,
        hermes_home=str(profile.home),
        platform="cli",
        agent_identity=profile.name,
        agent_context="primary",
    )
    yield Check(name, "ok", "it starts")
    try:
        if seat.implements("search_records") and seat.implements("forget_records"):
            yield _write_read_delete(seat, session)
        else:
            why = "it offers no way to find or delete a test turn, so none was written"
            yield Check(f"{name}, round trip", "not tried", why)
    finally:
        seat.ask("shutdown", within=limits.shutdown)


def _write_read_delete(seat: Seat, session: str) -> Check:
    name, limits = f"provider {seat.name}, round trip", seat.limits
    marker = f"doctorcheck{uuid4().hex[:12]}"

    def found() -> bool:
        records = seat.ask("search_records", marker, within=limits.tool_call, limit=5) or []
        return any(marker in str(record.get("text", "")) for record in records)

    began = time.perf_counter()
    try:
        seat.deliver(
            "sync_turn", marker, "Noted.", within=limits.hook, session_id=session, idempotency_key=marker
        )
        until = time.monotonic() + (0.0 if seat.stores else limits.hook)
        while not (there := found()) and time.monotonic() < until:
            time.sleep(0.1)  # an "accepted" turn is written some time later; nothing tells when
    finally:
        seat.ask("forget_records", within=limits.tool_call, session_id=session)
    took = f"in {(time.perf_counter() - began) * 1000:.0f} ms"
    if not there:
        return Check(name, "failed", "a test turn was written and not found again", "see its log and README")
    if found():
        return Check(
            name, "failed", "a test turn is still found after it was deleted", "report it to its author"
        )
    return Check(name, "ok", f"a test turn was written, found and deleted {took}")


def _open_to_others(path: Path) -> str:
    mode = stat.S_IMODE(path.stat().st_mode)
    return f"{path} is open to other users (mode {mode:03o})" if os.name == "posix" and mode & 0o077 else ""
