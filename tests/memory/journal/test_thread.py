"""The thread that delivers: flushed, stopped, started again, and never brought down."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes.memory.journal import Deliverer, Journal, Record
from hermes.memory.lanes import CallStillRunning
from tests.memory.journal.support import PROVIDER, Taker, turn


class Threaded:
    """A journal whose deliverer runs in its thread, as in a program."""

    def __init__(self, path: Path, taker: Taker) -> None:
        self.taker = taker
        self.journal = Journal(path)
        self.deliverer = Deliverer(self.journal, taker, providers=lambda: [PROVIDER])
        self.deliverer.start()

    def __enter__(self) -> Threaded:
        return self

    def __exit__(self, *_: object) -> None:
        self.deliverer.stop(5)
        self.journal.close()


def test_flush_waits_until_everything_is_delivered(tmp_path: Path) -> None:
    """It returns True when nothing is owed any more."""
    with Threaded(tmp_path / "journal.db", Taker()) as it:
        it.journal.append([turn(str(n)) for n in range(200)])
        assert it.deliverer.flush(30)
        assert it.taker.said() == [str(n) for n in range(200)]


def test_flush_does_not_wait_for_a_provider_that_fails(tmp_path: Path) -> None:
    """It tries everything once, whatever was to be waited for, and comes back with False."""
    taker = Taker()
    taker.refuse = lambda record: ConnectionError("down")
    with Threaded(tmp_path / "journal.db", taker) as it:
        it.journal.append([turn("0")])
        assert not it.deliverer.flush(600)
        calls = taker.calls
        assert calls >= 1
        assert not it.deliverer.flush(600)
        assert taker.calls > calls
        taker.refuse = lambda record: None
        assert it.deliverer.flush(600)


def test_flush_of_a_slow_provider_keeps_to_its_time(tmp_path: Path) -> None:
    """A call that does not return cannot hold the caller."""
    release = threading.Event()
    taker = Taker()
    taker.refuse = lambda record: None if release.wait(60) else TimeoutError()
    with Threaded(tmp_path / "journal.db", taker) as it:
        it.journal.append([turn("0")])
        assert not it.deliverer.flush(0.2)
        release.set()
        assert it.deliverer.flush(30)


def test_flush_goes_on_when_a_stuck_call_returns_while_it_looks(tmp_path: Path) -> None:
    """A call that comes back just after the provider was found stuck is no reason to give up."""
    taker = Taker()
    returned = threading.Event()
    taker.refuse = lambda record: None if returned.is_set() else CallStillRunning("sync_turn", 0.0)
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("0")])

        def providers() -> list[str]:
            if threading.current_thread() is threading.main_thread():  # flush counts what is left
                returned.set()
                deliverer.wake()
            return [PROVIDER]

        deliverer = Deliverer(journal, taker, providers=providers)
        deliverer.start()
        assert deliverer.flush(30)
        deliverer.stop(5)


def test_flush_waits_for_another_process_that_delivers(tmp_path: Path) -> None:
    """Where another deliverer has the lease, flush waits for it to have delivered."""
    with Threaded(tmp_path / "journal.db", Taker()) as first:
        first.journal.append([turn("0")])
        assert first.deliverer.flush(30)
        with Threaded(tmp_path / "journal.db", Taker()) as second:
            second.journal.append([turn("1")])
            assert second.deliverer.flush(30)
            assert second.taker.got == []
        assert first.taker.said() == ["0", "1"]


def test_stop_says_what_is_left_and_what_is_stuck(tmp_path: Path) -> None:
    """Behind a call that hangs, stopping keeps to its time and names it; nothing is lost."""
    started, release = threading.Event(), threading.Event()
    taker = Taker()

    def hang(record: Record) -> BaseException | None:
        started.set()
        return None if release.wait(60) else TimeoutError()

    taker.refuse = hang
    journal = Journal(tmp_path / "journal.db")
    deliverer = Deliverer(journal, taker, providers=lambda: [PROVIDER])
    deliverer.start()
    journal.append([turn(str(n)) for n in range(100)])
    deliverer.wake()
    assert started.wait(30)
    state = deliverer.stop(0.1)
    assert (state.undelivered, state.stuck) == (100, "turn of session s1")
    release.set()
    assert deliverer.stop(30).stuck == ""
    journal.close()


def test_a_stopped_deliverer_can_be_started_again(tmp_path: Path) -> None:
    """Stopping is not the end: starting goes on with what is left."""
    with Threaded(tmp_path / "journal.db", Taker()) as it:
        it.deliverer.stop(5)
        it.journal.append([turn("0")])
        it.deliverer.start()
        assert it.deliverer.flush(30)
        assert it.taker.said() == ["0"]


def test_the_thread_outlives_a_journal_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error while looking for the next record is logged, and delivery goes on."""
    with Threaded(tmp_path / "journal.db", Taker()) as it:
        broken = threading.Event()
        real = it.deliverer._chores

        def chores(now: float) -> None:
            if not broken.is_set():
                broken.set()
                raise OSError("the folder has gone")
            real(now)

        monkeypatch.setattr(it.deliverer, "_chores", chores)
        it.journal.append([turn("0")])
        it.deliverer.flush(5)
        assert broken.wait(30)
        assert it.deliverer.flush(30)


def test_what_is_done_between_is_done(tmp_path: Path) -> None:
    """The caller's upkeep runs on the thread of the deliverer."""
    done = threading.Event()
    with Journal(tmp_path / "journal.db") as journal:
        deliverer = Deliverer(journal, Taker(), providers=lambda: [PROVIDER], between=done.set)
        deliverer.start()
        assert done.wait(30)
        deliverer.stop(5)
