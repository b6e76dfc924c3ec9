"""Boundaries of sessions return at once, and what follows them still comes after them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.memory.journal import Journal
from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from tests.memory.journal.support import dead_owner
from tests.memory.providers import Recording, Waiting
from tests.memory.test_manager import QUICK, started

BOUNDARIES: dict[str, Callable[[MemoryManager, str], Any]] = {
    "on_session_end": lambda m, _: m.on_session_end([]),
    "on_session_switch": lambda m, new: m.on_session_switch(new),
    "commit_session_boundary_async": lambda m, new: m.commit_session_boundary_async([], new_session_id=new),
}


def seconds(action: Callable[[], object]) -> float:
    """How long *action* takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


@pytest.mark.parametrize("name", BOUNDARIES)
@pytest.mark.parametrize("hangs", ["on_session_end", "on_session_switch", "sync_turn"])
def test_a_boundary_costs_what_a_turn_costs(tmp_path: Path, name: str, hangs: str) -> None:
    """Whatever the provider does, an end or a switch is written down and returns, as a turn does."""
    provider = Waiting(hangs)
    turns, boundaries = [], []
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        for number in range(15):
            turns.append(seconds(lambda number=number: manager.sync_all("a", str(number))))  # type: ignore[misc]
            boundaries.append(seconds(lambda number=number: BOUNDARIES[name](manager, f"n{number}")))  # type: ignore[misc]
        assert statistics.median(boundaries) < 10 * statistics.median(turns)
        provider.release.set()
        assert manager.flush_pending(30)
        manager.shutdown_all()
    order = [seen[0] for seen in provider.seen]
    if name == "commit_session_boundary_async":
        boundary = ["sync_turn", "on_session_end", "on_session_switch"]
        assert order[1:-1] == boundary * 15


def test_a_recall_comes_after_the_switch_before_it() -> None:
    """A provider that is quick has been told of the switch when it is first asked in the new session."""
    provider = Recording(recalls="x")
    manager = started(provider)
    for number in range(25):
        manager.on_session_switch(f"n{number}")
        manager.prefetch_all("what?")
    order = [seen[:2] if seen[0] == "on_session_switch" else seen[::2] for seen in provider.seen[1:]]
    assert order == [
        pair for n in range(25) for pair in (("on_session_switch", f"n{n}"), ("prefetch", f"n{n}"))
    ]
    manager.shutdown_all()


def test_a_switch_that_is_slow_holds_one_call_and_not_beyond_its_limit() -> None:
    """The first recall gives a slow switch half of its own time; the next ones do not wait at all."""
    provider = Waiting("on_session_switch", recalls="tea")
    manager = started(provider, limits=Limits(prefetch=0.1, hook=30, shutdown=5))
    manager.on_session_switch("s2")
    assert provider.entered.wait(10)
    seat = manager._registry.external[0]
    left = seat.switching.wait(0.1)
    assert 0 < left <= 0.051  # of a limit of 0.1: what remains for the call itself
    assert seat.switching.wait(0.1) == 0.1
    assert manager.prefetch_all("x") == "tea"
    provider.release.set()
    manager.shutdown_all()


@pytest.mark.parametrize("fails", [OSError("no"), SystemExit(1)])
def test_a_switch_that_fails_is_not_waited_for(fails: BaseException) -> None:
    """A provider that raises has answered: the next call is made without waiting."""

    class Failing(Recording):
        def on_session_switch(self, new_session_id: str, **kwargs: Any) -> None:
            """Fail."""
            raise fails

    provider = Failing(recalls="tea")
    manager = started(provider)
    manager.on_session_switch("s2")
    assert manager.prefetch_all("x") == "tea"
    assert manager._registry.external[0].switching.wait(5.0) == 5.0
    manager.shutdown_all()


def test_an_undone_turn_is_missing_in_the_end_that_is_told_without_a_transcript(tmp_path: Path) -> None:
    """After an undo the provider is told of it once, and the end of the session does not repeat the turn."""
    provider = Recording()
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        manager.sync_all("keep", "1")
        manager.sync_all("undo", "2")
        manager.on_session_switch("s1", parent_session_id="s1", rewound=True, reason="undo")
        manager.sync_all("again", "3")
        manager.on_session_end([])
        manager.shutdown_all()
    assert len(provider.of("on_session_switch")) == 1
    ((messages,),) = provider.of("on_session_end")
    assert [message["content"] for message in messages] == ["keep", "1", "again", "3"]


class Together(Recording):
    """Takes several turns in one call; ``fails`` is what it raises instead."""

    fails: BaseException | None = None

    def sync_turns(self, turns: list[dict[str, Any]]) -> int:
        """Keep all of them or none."""
        if self.fails is not None:
            raise self.fails
        self.seen.append(("sync_turns", turns))
        return len(turns)


def test_a_provider_that_takes_several_turns_gets_them_with_all_that_belongs_to_each(tmp_path: Path) -> None:
    """A backlog is one call of mappings, each with the arguments that ``sync_turn`` would have had."""
    provider = Together()
    with Journal(tmp_path / "journal.db") as journal:
        down = Waiting("sync_turn", name="recording")
        manager = started(down, journal=journal, limits=QUICK)
        for number in range(5):
            manager.sync_all(
                f"q{number}",
                f"a{number}",
                idempotency_key=f"k{number}",
                turn_time=100.0 + number,
                turn_author="ann",
                session_id=f"s{number % 2}",
            )
        assert down.entered.wait(10)
        manager.shutdown_all()
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal, session="later")
        assert manager.flush_pending(30)
        manager.shutdown_all()
    down.release.set()
    ((turns,),) = provider.of("sync_turns")
    assert turns == [
        {
            "user_content": f"q{number}",
            "assistant_content": f"a{number}",
            "session_id": f"s{number % 2}",
            "idempotency_key": f"k{number}",
            "turn_time": 100.0 + number,
            "turn_author": "ann",
        }
        for number in range(5)
    ]


def test_a_group_that_returns_late_counts_for_each_of_its_turns(tmp_path: Path) -> None:
    """A call of several turns that comes back after its limit is not made again, neither whole nor in parts."""
    provider = Together()
    slow = Waiting(name="recording")
    provider.sync_turns = slow._waiting(provider.sync_turns)  # type: ignore[method-assign]
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal, limits=QUICK)
        manager._registry.external[0].state = manager._registry.external[0].state.STARTING
        for number in range(4):
            manager.sync_all(str(number), "a")
        manager._registry.external[0].state = manager._registry.external[0].state.READY
        manager._outgoing.wake()
        assert slow.entered.wait(10)
        assert not manager.flush_pending(2.0)  # it is looked after several times meanwhile
        slow.release.set()
        assert manager.flush_pending(30)
        assert [len(turns) for (turns,) in provider.of("sync_turns")] == [4]
        assert provider.of("sync_turn") == []
        manager.shutdown_all()


def test_a_group_that_fails_is_told_singly(tmp_path: Path) -> None:
    """Where several in one call are refused, each is offered by ``sync_turn``: nothing is lost, order is kept."""
    provider = Together()
    provider.fails = OSError("too much")
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        seat = manager._registry.external[0]
        seat.state = seat.state.STARTING
        for number in range(4):
            manager.sync_all(str(number), "a")
        seat.state = seat.state.READY
        assert manager.flush_pending(30)
        assert [turn[0] for turn in provider.of("sync_turn")] == ["0", "1", "2", "3"]
        manager.shutdown_all()


@pytest.mark.parametrize(
    "over",
    [
        lambda m: m.on_session_end(None),
        lambda m: m.on_session_end([]),
        lambda m: m.commit_session_boundary_async(None, new_session_id="s2"),
        lambda m: m.commit_session_boundary_async([], new_session_id="s2", reason="idle"),
        lambda m: (m.on_session_switch("s2", reason="compression"), m.on_session_end([])),
        lambda m: (m.on_session_end([]), m.on_session_end([]), m.on_session_switch("s2", reset=True)),
        lambda m: m.shutdown_all(),
    ],
)
def test_however_a_session_ends_its_end_is_told_once_with_all_its_turns(
    tmp_path: Path, over: Callable[[MemoryManager], Any]
) -> None:
    """An end, a boundary, a continued session, or nothing at all because the process went away."""
    provider = Recording()
    with Journal(tmp_path / "journal.db", owner=dead_owner()) as journal:
        manager = started(provider, journal=journal)
        for number in range(3):
            manager.sync_all(f"q{number}", f"a{number}")
        over(manager)
        manager.shutdown_all()
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal, session="later")
        assert manager.flush_pending(30)
        manager.shutdown_all()
    ((messages,),) = provider.of("on_session_end")
    assert [message["content"] for message in messages] == ["q0", "a0", "q1", "a1", "q2", "a2"]


def test_a_member_of_that_name_in_a_provider_without_keys_is_left_alone(tmp_path: Path) -> None:
    """A class that does not know the key was not written for this: what its ``sync_turns`` does, nobody knows."""

    class Older(Together):
        def sync_turn(self, user_content: str, assistant_content: str, **kwargs: Any) -> None:
            """Keep one."""
            self.seen.append(("sync_turn", user_content))

    provider = Older()
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        seat = manager._registry.external[0]
        seat.state = seat.state.STARTING
        for number in range(4):
            manager.sync_all(str(number), "a")
        seat.state = seat.state.READY
        assert manager.flush_pending(30)
        manager.shutdown_all()
    assert provider.of("sync_turns") == []
    assert len(provider.of("sync_turn")) == 4
