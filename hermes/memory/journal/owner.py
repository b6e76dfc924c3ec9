"""Which process that is, and whether it still lives."""

from __future__ import annotations

import functools
import os
import socket
import sqlite3
import uuid
from pathlib import Path

import attrs


@attrs.frozen
class Owner:
    """One opener of a journal: *place* is where its *pid* means something, *born* tells a reused pid apart."""

    id: str
    place: str
    pid: int
    born: str

    @classmethod
    def here(cls) -> Owner:
        """This process, opening the journal once more."""
        pid = os.getpid()
        return cls(uuid.uuid4().hex, _place(), pid, _born(pid))

    def lives(self) -> bool | None:
        """Whether that process lives; None where it cannot be known from here."""
        if self.place != _place() or os.name != "posix":
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # somebody else's process
        return _born(self.pid) == self.born


class Watch:
    """Tells which owners are gone: by their process where that can be seen, else by a beat that stopped.

    The beat is compared with the caller's monotonic clock, never with a time that was written down: clocks
    jump.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}

    def is_gone(self, con: sqlite3.Connection, owner_id: str, now: float, silence: float) -> bool:
        """Whether the owner has left, has died, or was silent for *silence* seconds where none can look."""
        row = con.execute("SELECT id, place, pid, born, beat FROM owner WHERE id = ?", (owner_id,)).fetchone()
        if row is None:
            self._seen.pop(owner_id, None)
            return True
        lives = Owner(*row[:4]).lives()
        return not lives if lives is not None else self.is_silent(owner_id, row[4], now, silence)

    def is_silent(self, owner_id: str, beat: int, now: float, silence: float) -> bool:
        """Whether *beat* has not changed for *silence* seconds of watching."""
        seen = self._seen.get(owner_id)
        if seen is None or seen[0] != beat:
            self._seen[owner_id] = (beat, now)
            return False
        return now - seen[1] >= silence


@functools.cache
def _place() -> str:
    """The machine, since its start, and the namespace in which a pid counts."""
    parts = [socket.gethostname()]
    for source in (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")):
        try:
            parts.append(str(source.readlink()) if source.is_symlink() else source.read_text().strip())
        except OSError:
            parts.append("")
    return " ".join(parts)


def _born(pid: int) -> str:
    """When the process was started, in whatever the system counts in; empty where it does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
