"""What the tests of the journal share: entries, clocks that are moved by hand, a provider that remembers."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hermes.memory.journal import Deliverer, Entry, Journal, Kind, Record, Sent
from hermes.memory.journal.circuit import Backoff
from hermes.memory.journal.owner import Owner

PROVIDER = "probe"
_numbers = itertools.count()


def turn(
    text: str, session: str = "s1", *, key: str = "", provider: str = PROVIDER, at: float = 0.0
) -> Entry:
    """A turn in which the person says *text*."""
    payload = {"user": text, "assistant": f"noted: {text}", "messages": None}
    return Entry(Kind.TURN, provider, session, payload, key or f"k{next(_numbers)}", at or time.time())


def end(session: str = "s1", messages: list[dict[str, Any]] | None = None, *, key: str = "") -> Entry:
    """The end of *session*."""
    payload = {"messages": messages or []}
    return Entry(Kind.SESSION_END, PROVIDER, session, payload, key or f"k{next(_numbers)}", time.time())


def switch(old: str, new: str) -> Entry:
    """The switch from *old* to *new*."""
    payload = {"new_session_id": new, "parent_session_id": old, "reset": True}
    return Entry(Kind.SESSION_SWITCH, PROVIDER, old, payload, f"k{next(_numbers)}", time.time())


def undo(session: str = "s1") -> Entry:
    """The last turn of *session* is taken back."""
    payload = {"new_session_id": session, "parent_session_id": session, "rewound": True, "reason": "undo"}
    return Entry(Kind.SESSION_SWITCH, PROVIDER, session, payload, f"k{next(_numbers)}", time.time())


def write(action: str, content: str, **metadata: Any) -> Entry:
    """A change of the built-in memory."""
    payload = {"action": action, "target": "memory", "content": content, "metadata": metadata}
    return Entry(Kind.MEMORY_WRITE, PROVIDER, "s1", payload, f"k{next(_numbers)}", time.time())


class Clock:
    """A wall clock and a monotonic one, moved together or apart."""

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self.wall = wall
        self.steady = 1000.0

    def time(self) -> float:
        """Unix seconds."""
        return self.wall

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.steady

    def pass_(self, seconds: float) -> None:
        """Let time go by."""
        self.wall += seconds
        self.steady += seconds


class Taker:
    """A provider that keeps what it is sent; ``refuse`` says what it raises instead, if anything."""

    def __init__(self, sent: Sent = Sent.STORED) -> None:
        self.sent = sent
        self.got: list[Record] = []
        self.calls = 0
        self.groups: list[int] = []
        self.refuse: Callable[[Record], BaseException | None] = lambda record: None

    def __call__(self, record: Record) -> Sent:
        """Take *record*."""
        self.calls += 1
        error = self.refuse(record)
        if error is not None:
            raise error
        self.got.append(record)
        return self.sent

    def many(self, records: Sequence[Record]) -> Sent:
        """Take all of *records*, or none where one of them is refused."""
        self.calls += 1
        for record in records:
            if (error := self.refuse(record)) is not None:
                raise error
        self.groups.append(len(records))
        self.got.extend(records)
        return self.sent

    def said(self, session: str | None = None) -> list[str]:
        """What the person said, in the order in which it came."""
        return [
            r.payload["user"] for r in self.got if r.kind is Kind.TURN and session in (None, r.session_id)
        ]

    def kinds(self) -> list[str]:
        """Kind and session of what came, in order."""
        return [f"{record.kind} {record.session_id}" for record in self.got]


class Bench:
    """A journal with its deliverer, driven step by step by a clock that is moved by hand."""

    def __init__(
        self,
        path: Path | None,
        taker: Taker,
        clock: Clock | None = None,
        *,
        owner: Owner | None = None,
        together: bool = False,
        **options: Any,
    ) -> None:
        self.clock = clock or Clock()
        self.taker = taker
        self.active = [PROVIDER]
        self.chosen = self.active
        self.together = together
        self.journal = Journal(path, clock=self.clock.time, owner=owner, **options)
        self.deliverer = self.new_deliverer()

    def new_deliverer(self) -> Deliverer:
        """A deliverer of the same journal, with the same clock."""
        return Deliverer(
            self.journal,
            self.taker,
            providers=lambda: self.active,
            chosen=lambda: self.chosen,
            send_many=self.taker.many,
            together=lambda provider: self.together,
            backoff=Backoff(rng=random.Random(7)),
            monotonic=self.clock.monotonic,
        )

    def settle(self) -> None:
        """Deliver what can be delivered at this moment."""
        while self.deliverer.step() == 0.0:
            pass

    def run(
        self, seconds: float, *, until: Callable[[], bool] = lambda: False, at_least: float = 0.0
    ) -> None:
        """Deliver for *seconds* of the clock; every pause is at least *at_least* seconds long."""
        over = self.clock.steady + seconds
        while self.clock.steady < over and not until():
            pause = self.deliverer.step()
            if pause:
                self.clock.pass_(min(max(pause, at_least), over - self.clock.steady))

    def undelivered(self) -> int:
        """How much is owed."""
        return self.journal.stats().undelivered


def dead_owner() -> Owner:
    """A process of this machine that has died."""
    import subprocess
    import sys

    import attrs

    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return attrs.evolve(Owner.here(), pid=child.pid, born="long ago")
