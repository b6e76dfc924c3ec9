"""A disk that refuses never reaches the turn: records are kept, counted, and written when it is over."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes import database as database_module
from hermes.errors import StoreUnavailable
from hermes.memory.journal import Journal, Kind, State
from hermes.memory.latency import HookStats
from tests.memory.journal.support import Bench, Taker, end, switch, turn
from tests.support import give_to_nobody, unprivileged


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Let no file of this process grow beyond *room* bytes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def fill(journal: Journal, start: int = 0) -> int:
    """Append until the disk is full and stays so: two turns are held. The next number."""
    number, held = start, 0
    while held < 2:
        done = journal.append([turn(f"{number} {'x' * 2000}", at=1.0 + number)])
        assert done.records == 1
        held = 0 if done.durable else held + 1
        number += 1
        assert number < 10_000
    return number


def numbers(journal: Journal) -> list[int]:
    """The numbers of the turns in the journal."""
    return [int(r.payload["user"].split()[0]) for r in journal.records(limit=100_000)]


def figures(journal: Journal) -> tuple[int, int, int]:
    """What status says of the probe: deliveries, failures in a row, calls of its recall."""
    stats = journal.stats()
    health, hooks = stats.health["probe"], stats.hooks["probe"]
    return health.successes, health.failing, hooks["prefetch"].calls


def in_child(action: Callable[[], None]) -> None:
    """Run *action* in a forked child, where a lowered limit harms nobody else."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        except BaseException as exc:  # noqa: BLE001 - the parent gets the text, whatever it is
            os.write(write, "".join(traceback.format_exception(exc)).encode()[-60_000:])
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        report = pipe.read().decode()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        pytest.fail(report or "the child died")


def test_figures_of_a_full_disk_are_written_when_there_is_room(tmp_path: Path) -> None:
    """What was delivered, failed and measured while the disk was full is added to what was known before."""

    def check() -> None:
        bench = Bench(tmp_path / "journal.db", Taker())
        journal = bench.journal
        journal.append([turn("before")])
        bench.settle()
        journal.add_hooks("probe", {"prefetch": HookStats(calls=1)})
        with full_disk(200_000):
            held = fill(journal)
            journal.add_hooks("probe", {"prefetch": HookStats(calls=2)})
            bench.settle()
            bench.taker.refuse = lambda record: OSError("no")
            journal.append([turn("0 fails")])
            journal.add_hooks("probe", {"prefetch": HookStats(calls=4)})
            bench.settle()
            assert figures(journal)[2] == 7
        bench.run(20)
        assert figures(journal)[0] == 1 + held
        assert figures(journal)[1] >= 1
        journal.close()
        with Journal(tmp_path / "journal.db", clock=bench.clock.time) as again:
            assert figures(again)[0] == 1 + held
            assert figures(again)[1] >= 1
            assert figures(again)[2] == 7

    in_child(check)


def test_a_full_disk_keeps_turns_in_memory_and_writes_them_when_there_is_room(tmp_path: Path) -> None:
    """While the disk is full appends say so and are counted; afterwards all is there, in the order it was said."""

    def check() -> None:
        with Journal(tmp_path / "journal.db") as journal:
            journal.append([turn("0 first")])
            with full_disk(200_000):
                full = fill(journal, 1)
                stats = journal.stats()
                assert (stats.held, stats.undelivered) == (2, full)
                assert stats.trouble
            assert journal.append([turn(f"{full}")]).durable
            assert journal.stats().held == 0
            assert journal.stats().trouble == ""
            assert numbers(journal) == list(range(full + 1))

    in_child(check)


def test_what_is_held_is_written_without_another_turn(tmp_path: Path) -> None:
    """The deliverer writes what was kept in memory as soon as there is room, and so does closing."""

    def check() -> None:
        taker = Taker()
        bench = Bench(tmp_path / "journal.db", taker)
        bench.active = []
        bench.journal.append([turn("0")])
        with full_disk(200_000):
            full = fill(bench.journal, 1)
            bench.run(20)
            assert bench.journal.stats().held == 2
        bench.run(20)
        assert bench.journal.stats().held == 0
        with full_disk(200_000):
            full = fill(bench.journal, full)
        bench.journal.close()
        with Journal(tmp_path / "journal.db") as again:
            assert numbers(again) == list(range(full))

    in_child(check)


def test_a_full_disk_does_not_stop_delivery(tmp_path: Path) -> None:
    """With a healthy provider everything is delivered once and in order, although no outcome can be written."""

    def check() -> None:
        taker = Taker()
        bench = Bench(tmp_path / "journal.db", taker)
        with full_disk(300_000):
            full = fill(bench.journal)
            bench.run(10)
            assert [int(text.split()[0]) for text in taker.said()] == list(range(full))
            bench.run(30)
            assert len(taker.got) == full
        bench.run(10)
        assert bench.undelivered() == 0
        bench.journal.append([end("s1")])
        bench.run(10)
        assert len(taker.got[-1].payload["messages"]) == 2 * full
        assert len(taker.got) == full + 1
        bench.journal.close()

    in_child(check)


def test_an_end_kept_in_memory_is_not_owed_twice(tmp_path: Path) -> None:
    """A session that ended while the disk was full is ended once after it was written."""

    def check() -> None:
        taker = Taker()
        bench = Bench(tmp_path / "journal.db", taker)
        with full_disk(200_000):
            fill(bench.journal)
            assert not bench.journal.append([end("s1")]).durable
        bench.active = []
        bench.run(10)
        bench.journal.close()
        later = Bench(tmp_path / "journal.db", taker)
        later.run(100)
        assert [record.kind for record in taker.got].count(Kind.SESSION_END) == 1
        later.journal.close()

    in_child(check)


def test_an_end_that_is_only_in_memory_has_every_turn(tmp_path: Path) -> None:
    """An end that comes while the disk is full is delivered with the turns in the file and those in memory."""

    def check() -> None:
        bench = Bench(tmp_path / "journal.db", Taker())
        with full_disk(200_000):
            full = fill(bench.journal)
            assert not bench.journal.append([end("s1")]).durable
            bench.run(20)
            assert bench.taker.got[-1].kind is Kind.SESSION_END
            assert len(bench.taker.got[-1].payload["messages"]) == 2 * full
        bench.journal.close()

    in_child(check)


def test_a_turn_that_is_only_in_memory_waits_for_a_switch_in_the_file(tmp_path: Path) -> None:
    """What is held in memory is newer than all that is in the file, and passes no boundary there."""

    def check() -> None:
        taker = Taker()
        bench = Bench(tmp_path / "journal.db", taker)
        bench.journal.append([turn("0", "old"), end("old"), switch("old", "new")])
        taker.refuse = lambda record: ConnectionError("no") if record.session_id == "old" else None
        with full_disk(200_000):
            fill(bench.journal)
            assert not bench.journal.append([turn("first", "new")]).durable
            bench.run(20)
            assert taker.said("new") == []
            taker.refuse = lambda record: None
            bench.run(600)
            assert taker.kinds()[-4:] == ["turn old", "session_end old", "session_switch old", "turn new"]
        bench.journal.close()

    in_child(check)


def test_a_file_that_may_not_grow_is_a_full_disk_too(tmp_path: Path) -> None:
    """Where SQLite itself says that there is no room, turns are held and written in order later."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("0 first")])
        disk = journal.store.disk
        assert disk is not None
        with disk.transaction(durable=False) as con:
            (pages,) = con.execute("PRAGMA page_count").fetchone()
            con.execute(f"PRAGMA max_page_count = {pages + 5}")
        full = fill(journal, 1)
        assert "full" in journal.stats().trouble
        with disk.transaction(durable=False) as con:
            con.execute("PRAGMA max_page_count = 1000000")
        assert journal.append([turn(f"{full}")]).durable
        assert numbers(journal) == list(range(full + 1))


def test_a_read_only_file_keeps_turns_in_memory() -> None:
    """A journal that may not be written is read, and what is new is kept in memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "home"
        with Journal(folder / "journal.db") as journal:
            journal.append([turn("0"), turn("1")])
        (folder / "journal.db").chmod(0o400)
        folder.chmod(0o500)
        give_to_nobody(Path(name))

        def check() -> None:
            with Journal(folder / "journal.db") as journal:
                done = journal.append([turn("2")])
                assert not done.durable
                with pytest.raises(StoreUnavailable):
                    journal.drop([1])
                folder.chmod(0o700)
                (folder / "journal.db").chmod(0o600)
                assert journal.append([turn("3")]).durable
                assert numbers(journal) == [0, 1, 2, 3]

        unprivileged(check)


def test_a_lock_that_is_never_given_back_does_not_hold_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another process keeps the file locked, an append gives up after its patience and keeps the turn."""
    monkeypatch.setattr("hermes.memory.journal.store.PATIENCE", 0.05)
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("0")])
        rude = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
        rude.execute("BEGIN IMMEDIATE")
        done = journal.append([turn("1")])
        assert (done.durable, done.records) == (False, 1)
        assert "locked" in done.reason
        assert not journal.append([turn("2")]).durable
        rude.execute("ROLLBACK")
        rude.close()
        assert journal.append([turn("3")]).durable
        assert numbers(journal) == [0, 1, 2, 3]
    assert database_module.PATIENCE > 1


def test_a_clock_that_jumps_back_stalls_and_reorders_nothing(tmp_path: Path) -> None:
    """An hour back or ten years: records go out in the order in which they were said, and failures are retried."""
    taker = Taker()
    bench = Bench(tmp_path / "journal.db", taker)
    bench.journal.append([turn("0"), turn("1")])
    taker.refuse = lambda record: ConnectionError("down")
    bench.run(30)
    bench.clock.wall -= 3600
    bench.journal.append([turn("2", at=bench.clock.wall)])
    bench.clock.wall -= 10 * 365 * 86400
    bench.journal.append([turn("3", at=bench.clock.wall)])
    taker.refuse = lambda record: None
    bench.run(600)
    assert taker.said() == ["0", "1", "2", "3"]
    assert bench.journal.stats().dead == 0
    bench.journal.close()


def test_a_clock_that_jumps_ahead_sets_nothing_aside_that_can_be_delivered(tmp_path: Path) -> None:
    """Years that never passed do not make a record too old, as long as the provider takes it."""
    taker = Taker()
    bench = Bench(tmp_path / "journal.db", taker)
    bench.journal.append([turn("0", at=bench.clock.wall)])
    bench.clock.wall += 10 * 365 * 86400
    failed = []
    taker.refuse = lambda record: failed.append(1) or (ConnectionError("once") if len(failed) == 1 else None)  # type: ignore[func-returns-value]
    bench.run(60)
    assert taker.said() == ["0"]
    assert bench.journal.records(state=State.DEAD) == []
    bench.journal.close()
