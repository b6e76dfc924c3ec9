"""What a plugin does to the world, seen from inside its process: connections, files written, programs started.

An audit hook sees what goes through the interpreter. What a compiled extension does by itself it does not see.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from hermes.testing.conformance.findings import Where

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOVES = {
    "os.rename": 1,
    "os.link": 1,
    "os.symlink": 1,
    "os.mkdir": 0,
    "os.truncate": 0,
    "sqlite3.connect": 0,
}
"""Events that make a file or change one, and which of their arguments says which."""
_REACHES = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_RESOLVES = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_STARTS = {"subprocess.Popen": 0, "os.posix_spawn": 0, "os.exec": 0, "os.system": 0}
_NEAR = ("127.", "localhost", "::1", "0.0.0.0")  # noqa: S104 - compared with, not bound to


class Network(Enum):
    """What becomes of a connection to somewhere."""

    NONE = "none"
    """Refused, wherever it goes."""
    NEAR = "near"
    """Refused, except within this machine."""
    SLOW = "slow"
    """It waits until ``Watch.release`` and is refused then, wherever it goes."""


class Event(NamedTuple):
    """Something that happened, to what, from where in the plugin.

    The kind is ``network`` (refused), ``near`` (let through to this machine), ``write`` or ``process``.
    """

    kind: str
    what: str
    where: Where


class Watch:
    """The events of this process from now on; *folder* holds the plugin. It cannot be ended."""

    def __init__(self, folder: str) -> None:
        self.events: list[Event] = []
        self.network = Network.NEAR
        self._folder = folder
        self._released = threading.Event()
        self._looking = threading.local()
        sys.addaudithook(self._hook)

    def seen(self, kind: str) -> list[Event]:
        """The events of that kind so far."""
        return [event for event in self.events if event.kind == kind]

    def release(self) -> None:
        """Let connections go on that wait."""
        self._released.set()

    def place(self, frame: FrameType | None = None) -> Where:
        """The innermost line of the plugin on the stack of *frame*; empty where there is none."""
        at: FrameType | None = frame or sys._getframe(1)
        while at is not None:
            if at.f_code.co_filename.startswith(self._folder):
                return Where(at.f_code.co_filename, at.f_lineno)
            at = at.f_back
        return Where()

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if getattr(self._looking, "now", False):
            return
        self._looking.now = True
        try:
            self._look(event, args)
        finally:
            self._looking.now = False

    def _look(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            if isinstance(path, str | bytes | os.PathLike) and _is_write(mode, flags):
                self._note("write", os.fsdecode(path))
        elif event in _MOVES:
            path = args[_MOVES[event]]
            if isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path) not in ("", ":memory:"):
                self._note("write", os.fsdecode(path))
        elif event in _STARTS:
            self._note("process", _shown(args[_STARTS[event]]))
        elif event in _REACHES:
            if isinstance(args[-1], tuple):
                self._reach(str(args[-1][0]), f"{args[-1][0]}:{args[-1][1]}")
        elif event in _RESOLVES and args[0]:
            self._reach(os.fsdecode(args[0]), _shown(args[0]), resolving=True)

    def _reach(self, host: str, shown: str, *, resolving: bool = False) -> None:
        near = host.startswith(_NEAR)
        if self.network is Network.NEAR and near:
            self._note("near", shown)
            return
        if resolving and near:
            return  # asking what localhost is sends nothing
        self._note("network", shown)
        if self.network is Network.SLOW:
            self._released.wait(30)
        if resolving:
            raise socket.gaierror(socket.EAI_AGAIN, f"no network here, and {shown} was asked for")
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"no network here, and {shown} was asked for")

    def _note(self, kind: str, what: str) -> None:
        path = Path(what)
        if kind == "write" and not path.is_absolute():
            what = str(Path.cwd() / (what.removeprefix("file:").partition("?")[0]))
        self.events.append(Event(kind, what, self.place(sys._getframe(3))))


def _is_write(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)


def _shown(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes | os.PathLike) else str(value)
