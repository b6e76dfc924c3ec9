"""Many threads, one commit: whoever comes while a commit is under way shares the next one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

J = TypeVar("J")

LONGEST_GATHERING = 0.002


class _Seat(Generic[J]):
    """One caller's place in the queue; its lock is held until it is its turn, or its work is done."""

    __slots__ = ("done", "job", "turn")

    def __init__(self, job: J) -> None:
        self.job = job
        self.done = False
        self.turn = threading.Lock()
        self.turn.acquire()


class GroupCommit(Generic[J]):
    """Gathers jobs and gives them to *commit* together, in the order in which they came.

    There is no thread of its own: the first caller commits for all who wait, then the next one in the queue
    takes over. It gives those that were just served, and are about to come again, half a commit's time to do
    so: else two halves would take turns. Whoever completes the group commits it. *commit* must not raise.
    """

    def __init__(self, commit: Callable[[Sequence[J]], None]) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._queue: list[_Seat[J]] = []
        self._led = False
        self._gatherer: _Seat[J] | None = None
        self._wanted = 1
        self._took = 0.0  # seconds of the last commit
        self._ended = 0.0

    def submit(self, job: J) -> None:
        """Return when *job* was committed."""
        seat = _Seat(job)
        with self._lock:
            self._queue.append(seat)
            leads = not self._led
            self._led = True
            if self._gatherer is not None and len(self._queue) >= self._wanted:
                self._gatherer = None  # it waits on, as one of the group
                complete = True
            else:
                complete = False
        if complete:
            self._lead(seat)
            return
        if not leads:
            seat.turn.acquire()
            if seat.done:
                return
        self._gather(seat)

    def _gather(self, seat: _Seat[J]) -> None:
        """Lead, at the latest when the others had their time to come."""
        patience = min(self._took / 2, LONGEST_GATHERING)
        with self._lock:
            waits = len(self._queue) < self._wanted and time.monotonic() - self._ended < patience
            if waits:
                self._gatherer = seat
        if waits and not seat.turn.acquire(timeout=patience):
            with self._lock:
                completed = self._gatherer is not seat
                if not completed:
                    self._gatherer = None
            if completed:
                seat.turn.acquire()
        if not seat.done:
            self._lead(seat)

    def _lead(self, seat: _Seat[J]) -> None:
        with self._lock:
            seats, self._queue = self._queue, []
        start = time.monotonic()
        try:
            self._commit([one.job for one in seats])
        finally:
            with self._lock:
                self._ended = time.monotonic()
                self._took = self._ended - start
                heir = self._queue[0] if self._queue else None
                self._led = heir is not None
                self._wanted = len(seats) + len(self._queue)
            for one in seats:
                one.done = True
                if one is not seat:
                    one.turn.release()
            if heir is not None:
                heir.turn.release()
