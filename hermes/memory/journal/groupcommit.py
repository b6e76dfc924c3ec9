"""Many threads, one commit: whoever comes while a commit is under way shares the next one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

J = TypeVar("J")

LONGEST_GATHERING = 0.002


class _Seat(Generic[J]):
    """One caller's place in the queue; its lock is held until it is called: to commit, or because it is done."""

    __slots__ = ("_turn", "called", "done", "job", "next")

    def __init__(self, job: J) -> None:
        self.job = job
        self.done = False
        self.next: _Seat[J] | None = None
        """Who is called when this one has been."""
        self.called = False
        self._turn = threading.Lock()
        self._turn.acquire()

    def call(self) -> None:
        """Let its caller go on."""
        self.called = True
        self._turn.release()

    def wait(self, seconds: float = -1.0) -> BaseException | None:
        """Return when it is called, or after *seconds*.

        A Ctrl-C does not end it, because others rely on this one: it is returned, to be raised in the end.
        """
        interrupt: BaseException | None = None
        while not self.called:
            try:
                if not self._turn.acquire(timeout=seconds):
                    return interrupt
            except BaseException as exc:  # noqa: BLE001 - see above
                interrupt = exc
        if interrupt is not None:
            self._turn.acquire(blocking=False)  # it may have come before the lock was taken
        return interrupt


class GroupCommit(Generic[J]):
    """Gathers jobs and gives them to *commit* together, in the order in which they came.

    There is no thread of its own: the first caller commits for all who wait, then the next one in the queue
    takes over. It gives those that were just served, and are about to come again, a commit's time to do so:
    else two halves would take turns. Whoever completes the group commits it. *commit* must not raise.

    Those who are done wake each other, one by one: all at once they would only fight for the interpreter.
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
            leads, self._led = not self._led, True
            completes = self._gatherer is not None and len(self._queue) >= self._wanted
            if completes:
                self._gatherer = None  # it waits on, as one of the group
        interrupt = None if leads or completes else seat.wait()
        try:
            if completes:
                self._lead(seat)
            elif not seat.done:
                interrupt = self._gather(seat) or interrupt
        finally:
            if seat.next is not None:
                seat.next.call()
        if interrupt is not None:
            raise interrupt

    def _gather(self, seat: _Seat[J]) -> BaseException | None:
        """Lead, at the latest when the others had their time to come; a Ctrl-C that came meanwhile."""
        patience = min(self._took, LONGEST_GATHERING)
        with self._lock:
            waits = len(self._queue) < self._wanted and time.monotonic() - self._ended < patience
            if waits:
                seat.called = False  # as heir it was
                self._gatherer = seat
        interrupt = seat.wait(patience) if waits else None
        if waits:
            with self._lock:
                led = self._gatherer is not seat  # the group was completed, by one that commits it
                if not led:
                    self._gatherer = None
            if led:
                interrupt = seat.wait() or interrupt
        if not seat.done:
            self._lead(seat)
        return interrupt

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
            last = seat
            for one in seats:
                one.done = True
                if one is not seat:
                    last.next = one
                    last = one
            if heir is not None:
                heir.call()
