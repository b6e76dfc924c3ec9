"""A person at a terminal: a program in a pseudo-terminal, what it prints, and what is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>()][0-9A-B]?|\r")
_WHERE = b"\x1b[6n"


class Terminal:
    """``hermes ARGS`` in a terminal of its own, with *home* as its root; *program* is what Python runs."""

    def __init__(
        self,
        *args: str,
        home: Path,
        env: Mapping[str, str] | None = None,
        columns: int = 100,
        program: Sequence[str] = ("-m", "hermes"),
    ) -> None:
        self._screen = ""
        self._seen = 0
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HERMES")}
        self.process = subprocess.Popen(
            [sys.executable, *program, *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # Ctrl-C is for who has the terminal
            env={
                **clean,
                "PYTHONSAFEPATH": "1",
                "TERM": "xterm-256color",
                "HERMES_HOME": str(home),
                **(env or {}),
            },
        )
        os.close(theirs)

    @property
    def screen(self) -> str:
        """Everything that was printed, without escape sequences."""
        return _ESCAPES.sub("", self._screen)

    def expect(self, text: str, timeout: float = 30.0) -> str:
        """Wait until *text* is printed, behind what was expected before; what came before it."""
        end = time.monotonic() + timeout
        while text not in (rest := self.screen[self._seen :]):
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{text!r} was not printed behind {self._seen}:\n{self.screen}")
        self._seen += rest.index(text) + len(text)
        return rest[: rest.index(text)]

    def send(self, text: str) -> None:
        """Type *text*; a line ends with a carriage return."""
        os.write(self._fd, text.encode())

    def wait(self, timeout: float = 30.0) -> int:
        """Wait until the program has ended; its exit code."""
        end = time.monotonic() + timeout
        while self._read(end - time.monotonic()):
            pass
        return self.process.wait(max(1.0, end - time.monotonic()))

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(0.0, timeout))
        if not ready:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False  # the program has closed its end
        if _WHERE in data:
            os.write(self._fd, b"\x1b[1;1R" * data.count(_WHERE))
        self._screen += data.decode(errors="replace")
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._fd)
