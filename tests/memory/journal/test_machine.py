"""Whatever happens, in whatever order: the provider gets what it is owed, once, in order."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hermes.errors import PermanentError
from hermes.memory.journal import Journal, Kind, Record
from hermes.memory.lanes import CallStillRunning
from tests.memory.journal.support import Bench, Clock, Taker, dead_owner, end, switch, turn

SESSIONS = st.sampled_from(["a", "b", "c"])
DEAD = dead_owner()
FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory: what counts here is what is written in which order, not that it reaches a disk."""


class JournalMachine(RuleBasedStateMachine):
    """Turns, boundaries, failures of the provider, crashes and restarts, against what must have arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=FAST)
        self.path = Path(self.folder.name) / "journal.db"
        self.clock = Clock()
        self.arrived: list[Record] = []
        self.owed: list[tuple[str, str]] = []  # (kind, key), in the order in which it was written
        self.order: dict[str, list[str]] = {}  # session -> keys
        self.words: dict[str, list[str]] = {}  # session -> what was said since its last end was delivered
        self.poisoned: set[str] = set()
        self.open: set[str] = set()
        self.renamed = 0
        self.mood = "healthy"
        self.flaky = random.Random(5)
        self.together = False
        self.bench = self._start()

    def _start(self) -> Bench:
        taker = Taker()
        taker.refuse = self._take
        bench = Bench(self.path, taker, self.clock, owner=attrs.evolve(DEAD, id=uuid4().hex))
        bench.together = self.together
        taker.got = self.arrived
        return bench

    def _take(self, record: Record) -> BaseException | None:
        if record.key in self.poisoned:
            return PermanentError("poison")
        if self.mood == "down" or (self.mood == "flaky" and self.flaky.random() < 0.5):
            return ConnectionError("down")
        return CallStillRunning("sync_turn", 0.0) if self.mood == "stuck" else None

    @initialize(together=st.booleans())
    def begin(self, together: bool) -> None:
        """Nothing has been said yet, to a provider that takes one turn at a time or several."""
        self.together = self.bench.together = together
        assert self.bench.undelivered() == 0

    # -- what the person does ----------------------------------------------------------------------------

    def _append(self, *entries: Any) -> None:
        assert self.bench.journal.append(entries).durable
        for entry in entries:
            self.owed.append((entry.kind, entry.key))
            self.order.setdefault(entry.session_id, []).append(entry.key)

    def _name(self, session: str) -> str:
        return f"{session}{self.renamed}"

    @rule(session=SESSIONS, number=st.integers(1, 4))
    def say(self, session: str, number: int) -> None:
        """Some turns in a session."""
        name = self._name(session)
        self._append(*[turn(f"{len(self.owed)}-{n}", name) for n in range(number)])
        self.open.add(name)

    @rule(session=SESSIONS)
    def say_poison(self, session: str) -> None:
        """A turn that the provider can never take."""
        entry = turn("poison", self._name(session))
        self.poisoned.add(entry.key)
        self._append(entry)
        self.open.add(self._name(session))

    @rule(session=SESSIONS)
    def say_again(self, session: str) -> None:
        """A key that was used already changes nothing while it waits."""
        waiting = self.bench.journal.records(limit=1)
        if waiting:
            assert (
                self.bench.journal.append(
                    [turn("again", self._name(session), key=waiting[0].key)], open_sessions=False
                ).records
                == 0
            )

    @precondition(lambda self: self.open)
    @rule(pick=st.randoms(use_true_random=False), then_switch=st.booleans())
    def end_session(self, pick: random.Random, then_switch: bool) -> None:
        """A session ends, perhaps because another begins."""
        old = pick.choice(sorted(self.open))
        self.open.discard(old)
        entries = [end(old)]
        if then_switch:
            self.renamed += 1
            new = f"a{self.renamed}"
            entries.append(switch(old, new))
        self._append(*entries)
        if then_switch:
            self._append(turn(f"{len(self.owed)}", new))
            self.open.add(new)

    # -- what the world does -----------------------------------------------------------------------------

    @rule(mood=st.sampled_from(["healthy", "healthy", "down", "flaky", "stuck"]))
    def change_mood(self, mood: str) -> None:
        """The provider fails, hangs or mends."""
        self.mood = mood

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 1000.0]))
    def deliver(self, seconds: float) -> None:
        """Time passes with a deliverer at work."""
        self.bench.run(seconds, at_least=seconds / 25) if seconds else self.bench.settle()

    @rule(steps=st.integers(1, 3))
    def deliver_a_little(self, steps: int) -> None:
        """A few records only, so that the next thing happens in the middle."""
        for _ in range(steps):
            self.bench.deliverer.step()

    @rule(seconds=st.sampled_from([-86400.0 * 400, -3600.0, 3600.0, 86400.0 * 5]))
    def turn_the_clock(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self.clock.wall += seconds

    @rule()
    def crash(self) -> None:
        """The process dies; another one begins. What was open there is owed an end."""
        self.bench.journal.store.close()
        self.open.clear()
        self.bench = self._start()

    @rule()
    def leave_and_come_back(self) -> None:
        """The process ends in good order; another one begins."""
        self.bench.deliverer.stop(0)
        self.bench.journal.close()
        self.open.clear()
        self.bench = self._start()

    @rule()
    def another_process_appends(self) -> None:
        """A process that does not deliver adds a turn."""
        with Journal(self.path, clock=self.clock.time) as other:
            entry = turn(f"{len(self.owed)}", "elsewhere")
            assert other.append([entry], open_sessions=False).durable
        self.owed.append((entry.kind, entry.key))
        self.order.setdefault("elsewhere", []).append(entry.key)

    # -- what must hold ----------------------------------------------------------------------------------

    @invariant()
    def nothing_came_twice_or_out_of_order(self) -> None:
        """What has arrived of each session is in its order, each once; nothing newer than a switch came before it."""
        keys = [record.key for record in self.arrived]
        assert len(keys) == len(set(keys))
        for session, written in self.order.items():
            came = [r.key for r in self.arrived if r.session_id == session and not r.key.startswith("end-")]
            places = [written.index(key) for key in came]
            assert places == sorted(places)

    @invariant()
    def a_switch_comes_after_the_end_and_before_the_new(self) -> None:
        """End of the old, switch, turns of the new."""
        for place, record in enumerate(self.arrived):
            if record.kind is Kind.SESSION_SWITCH:
                before = {(r.kind, r.session_id) for r in self.arrived[:place]}
                assert (Kind.SESSION_END, record.session_id) in before
                new = record.payload["new_session_id"]
                assert not any(kind is Kind.TURN and session == new for kind, session in before)

    def teardown(self) -> None:
        """With a healthy provider everything arrives that was not poisoned, and every session has its end."""
        try:
            self._finish()
        finally:
            self.bench.journal.store.close()
            self.folder.cleanup()

    def _finish(self) -> None:
        self.mood = "healthy"
        self.crash()
        self.bench.run(2000, at_least=20.0)
        self.leave_and_come_back()
        self.bench.run(100, at_least=5.0)
        owed = {key for _, key in self.owed}
        assert owed - {record.key for record in self.arrived} == self.poisoned
        assert self.bench.undelivered() == 0
        assert {record.key for record in self.bench.journal.records()} == self.poisoned
        self._check_ends()
        sessions = self.bench.journal.store.read(lambda con: con.execute("SELECT * FROM session").fetchall())
        assert not any(sessions)

    def _check_ends(self) -> None:
        for session in self.order:
            if session == "elsewhere":
                continue
            mine = [
                r for r in self.arrived if r.session_id == session and r.kind in (Kind.TURN, Kind.SESSION_END)
            ]
            if mine:
                assert any(r.kind is Kind.SESSION_END for r in mine), f"{session} never ended"
            heard: list[str] = []
            for record in mine:
                if record.kind is Kind.TURN:
                    heard.append(record.payload["user"])
                    continue
                said = [m["content"] for m in record.payload["messages"] if m["role"] == "user"]
                assert [text for text in said if text in heard] == heard, (
                    "an end tells every turn since the last"
                )
                heard.clear()


def run(examples: int, steps: int) -> Callable[[], None]:
    """Run the machine *examples* times, *steps* things each."""
    return lambda: run_state_machine_as_test(
        JournalMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


def test_the_journal_keeps_its_promises() -> None:
    """A few dozen random histories."""
    run(50, 25)()


@pytest.mark.long
def test_the_journal_keeps_its_promises_for_long() -> None:
    """Many long random histories."""
    run(600, 60)()
