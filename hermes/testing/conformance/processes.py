"""The processes that a step has started, however far they have gone from it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PATIENCE = 5.0


def started_in(root: Path) -> set[int]:
    """The other processes whose environment names *root*, which is that of one check alone.

    One that left its session to live on is found too. Empty where the system does not tell.
    """
    mark = os.fsencode(root / "home")
    found = set()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environ.read_bytes():
                found.add(int(environ.parent.name))
        except OSError:  # of somebody else, or it has just ended
            continue
    return found - {os.getpid()}


def end_all(root: Path) -> None:
    """End every process that was started in *root*, and return when they are gone."""
    deadline = time.monotonic() + _PATIENCE
    while (left := started_in(root)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
