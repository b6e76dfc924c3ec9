"""That nothing of a provider is left after ``shutdown``."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from hermes.memory.lanes import describe
from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.findings import Where
from hermes.testing.conformance.processes import started_in
from hermes.testing.conformance.session import run

PATIENCE = 3.0
"""Seconds for what was asked to end to be gone."""
_WHY = "A host opens and closes many sessions in one process: what stays behind each time fills it up."


def gone(bench: Bench) -> None:
    """Threads, open files and programs after the shutdown are those from before the start."""
    provider = bench.registered.memory_provider
    place = bench.place_of(provider, "shutdown")
    threads, files = set(threading.enumerate()), set(_open_files().items())
    seat = bench.start()
    for heard in run(seat, bench):
        if heard.member == "shutdown" and heard.error is not None:
            raised = bench.place_raised(heard.error)
            bench.error(
                f"shutdown raises {describe(heard.error)}",
                why="What was handed over and not confirmed counts as lost when the end failed.",
                mend="close what is open and raise nothing, also when it was never started",
                where=raised if raised.file else place,
            )
    try:
        seat.deliver("shutdown", within=bench.limits.shutdown)
    except Exception as exc:  # noqa: BLE001 - whatever it raises is what is wrong
        bench.warning(
            f"a second shutdown raises {describe(exc)}",
            why="A host that ends in a hurry may call it twice.",
            mend="let a shutdown of what is shut down do nothing",
            where=place,
        )
    bench.leave(seat)
    gc.collect()
    for thread in _wait_for(lambda: set(threading.enumerate()) - threads):
        frame = sys._current_frames().get(thread.ident or 0)
        where = bench.watch.place(frame) if frame else Where()
        bench.error(
            f"the thread {thread.name!r} runs on after shutdown",
            why=_WHY,
            mend="tell it to stop and join it in shutdown",
            where=where if where.file else place,
        )
    opened = {event.what: event.where for event in bench.watch.seen("write")}
    for target in {target for _, target in _wait_for(lambda: set(_open_files().items()) - files)}:
        if target.startswith("/dev/") or target.endswith(("-wal", "-shm")):
            continue  # of the system, or of a database that is told of
        bench.error(
            f"{_shown(target, bench)} is open after shutdown",
            why=_WHY,
            mend="close it in shutdown",
            where=next((where for name, where in opened.items() if os.path.realpath(name) == target), place),
        )
    started = [event.where for event in bench.watch.seen("process")]
    for program in _wait_for(lambda: started_in(Path(bench.job.root))):
        bench.error(
            f"a program that it started runs on after shutdown (process {program})",
            why=_WHY,
            mend="end it in shutdown and wait for it",
            where=started[0] if started else place,
        )


def _wait_for(left: Callable[[], Collection[Any]]) -> list[Any]:
    """What is *left* once it has had time to end."""
    deadline = time.monotonic() + PATIENCE
    while left() and time.monotonic() < deadline:
        time.sleep(0.02)
    return sorted(left(), key=str)


def _open_files() -> dict[int, str]:
    """The descriptors of this process and what they lead to; empty where the system does not tell."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names are all that is needed
    except OSError:
        return {}
    found = {}
    for number in numbers:
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115
        except OSError:  # it was the one that listed them
            continue
    return found


def _shown(target: str, bench: Bench) -> str:
    path = Path(target)
    for folder, mark in ((Path(os.environ["HERMES_HOME"]), ""), (Path(bench.job.root, "home"), "~/")):
        if path.is_relative_to(folder):
            return f"{mark}{path.relative_to(folder)}"
    return target
