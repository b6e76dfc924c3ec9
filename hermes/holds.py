"""Which processes have a profile open for writing, so that nobody moves it away under them.

A holder keeps one file in ``<home>/locks/`` locked; the system unlocks it when the process dies, however it
dies. Taking a hold and moving a profile exclude each other by one more lock, the gate.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import HomeUnusable, ProfileBusy, ProfileNotFound
from hermes.files import PRIVATE_DIR, describe_failure, private_dir
from hermes.locks import FileLock, give_to_owner_of, is_locked
from hermes.paths import ProfilePaths
from hermes.profiles import DEFAULT

_GATE = ".gate.lock"
_HOLD = re.compile(r"(\d+)-\d+\.lock")
_GATE_TIMEOUT = 10.0


@contextlib.contextmanager
def hold(paths: ProfilePaths) -> Iterator[None]:
    """Have the profile open for writing: it can be neither deleted nor renamed nor reset meanwhile.

    Any number of processes, and several openers in one, hold a profile at once. Raises ProfileNotFound if it
    is gone, ProfileBusy if it is being moved away, HomeUnusable if no lock can be made in it.
    """
    with _gate(paths):
        _remove_stale(paths)
        lock = _take_one(paths)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # one that stays is unlocked and hence stale
            lock.path.unlink()
        lock.release()


@contextlib.contextmanager
def exclusive(paths: ProfilePaths, doing: str) -> Iterator[None]:
    """Nobody else holds the profile, and nobody can begin to, within this block; *doing* is for the error.

    Raises ProfileBusy with the processes that hold it, and as ``hold`` does.
    """
    with _gate(paths, doing):
        if pids := holders(paths):
            raise ProfileBusy(profile_name(paths), holders=pids, doing=f"cannot {doing}")
        yield


def holders(paths: ProfilePaths) -> list[int]:
    """The processes that hold the profile, by pid. Makes and removes nothing. Raises HomeUnusable."""
    found = set()
    for path, pid in _hold_files(paths):
        try:
            if is_locked(path):
                found.add(pid)
        except FileNotFoundError:
            continue  # given back while we looked
        except OSError as exc:
            raise HomeUnusable(path, describe_failure(path, exc)) from exc
    return sorted(found)


def profile_name(paths: ProfilePaths) -> str:
    """The name of the profile that lies at *paths*."""
    return DEFAULT if paths.home == paths.root else paths.home.name


@contextlib.contextmanager
def _gate(paths: ProfilePaths, doing: str = "open it") -> Iterator[None]:
    gate = FileLock(_folder(paths) / _GATE)
    try:
        taken = gate.acquire(_GATE_TIMEOUT)
    except FileNotFoundError as exc:  # the profile was moved away while we waited
        raise ProfileNotFound(profile_name(paths)) from exc
    except OSError as exc:
        raise HomeUnusable(gate.path, f"cannot be locked: {describe_failure(gate.path, exc)}") from exc
    if not taken:
        raise ProfileBusy(profile_name(paths), doing=f"cannot {doing} while it is being changed")
    try:
        yield
    finally:
        gate.release()


def _folder(paths: ProfilePaths) -> Path:
    """``<home>/locks``, made if it is missing; the home of a named profile is never made here."""
    if paths.home == paths.root:
        private_dir(paths.home)
    try:
        paths.holds.mkdir(PRIVATE_DIR)
    except FileExistsError:
        return paths.holds
    except FileNotFoundError as exc:
        raise ProfileNotFound(profile_name(paths)) from exc
    except OSError as exc:
        raise HomeUnusable(paths.holds, describe_failure(paths.home, exc)) from exc
    give_to_owner_of(paths.home, paths.holds)
    return paths.holds


def _hold_files(paths: ProfilePaths) -> list[tuple[Path, int]]:
    try:
        return [(path, int(m[1])) for path in paths.holds.iterdir() if (m := _HOLD.fullmatch(path.name))]
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise HomeUnusable(paths.holds, describe_failure(paths.holds, exc)) from exc


def _take_one(paths: ProfilePaths) -> FileLock:
    for number in itertools.count(1):
        lock = FileLock(paths.holds / f"{os.getpid()}-{number}.lock")
        try:
            if lock.acquire(0):
                return lock
        except OSError as exc:
            raise HomeUnusable(lock.path, f"cannot be locked: {describe_failure(lock.path, exc)}") from exc
    raise AssertionError("unreachable")


def _remove_stale(paths: ProfilePaths) -> None:
    """Under the gate: what is unlocked now belongs to nobody."""
    for path, _ in _hold_files(paths):
        with contextlib.suppress(OSError):
            if not is_locked(path):
                path.unlink()
