"""Looking at a journal shows everything and touches nothing."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from hermes.errors import StoreUnavailable
from hermes.memory.journal import Journal, State, peek
from hermes.memory.latency import HookStats, Latency
from tests.memory.journal.support import PROVIDER, Bench, Taker, turn


def listing(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below *folder*: its size, when it was changed, its content; an index of shared memory apart."""
    return {
        file.name: (file.stat().st_size, file.stat().st_mtime_ns, file.read_bytes())
        for file in folder.iterdir()
        if not file.name.endswith("-shm")
    }


def names_in(folder: Path) -> set[str]:
    """The names of the files in *folder*."""
    return {file.name for file in folder.iterdir()}


def test_without_a_journal_there_is_nothing_to_see(tmp_path: Path) -> None:
    """None, and neither the file nor its folder is made."""
    with peek(tmp_path / "home" / "journal.db") as view:
        assert view is None
    assert list(tmp_path.iterdir()) == []


def test_a_closed_journal_is_read_without_a_trace(tmp_path: Path) -> None:
    """Stats and records are the same as through the journal itself; no file changes or appears."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("a", at=5.0), turn("b", provider="other")])
        expected = journal.stats()
    names = names_in(tmp_path)
    before = listing(tmp_path)
    with peek(tmp_path / "journal.db") as view:
        assert view is not None
        stats = view.stats()
        assert (stats.undelivered, stats.oldest, stats.mode) == (2, 5.0, "wal")
        assert stats.undelivered_by_provider == expected.undelivered_by_provider
        assert [record.payload["user"] for record in view.records()] == ["a", "b"]
        assert view.records(provider="other", state=State.PENDING, limit=1)[0].provider == "other"
        assert view.get(1) is not None
        assert view.get(99) is None
    assert listing(tmp_path) == before
    assert names_in(tmp_path) == names


def test_a_journal_in_use_is_read_as_it_is_now(tmp_path: Path) -> None:
    """What another opener has only in its write-ahead log is seen, and it can go on writing meanwhile."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("a")])
        names = names_in(tmp_path)
        with peek(tmp_path / "journal.db") as view:
            assert view is not None
            assert view.stats().undelivered == 1
            assert journal.append([turn("b")]).durable
            assert view.stats().undelivered == 1, "one moment"
        with peek(tmp_path / "journal.db") as view:
            assert view is not None
            assert view.stats().undelivered == 2
        assert names_in(tmp_path) == names


def test_what_a_killed_process_left_is_read_without_recovering_it(tmp_path: Path) -> None:
    """A write-ahead log without its index is read from a copy: nothing is made in the home."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("a")])
        (tmp_path / "home").mkdir()
        for side in ("", "-wal"):
            shutil.copyfile(tmp_path / f"journal.db{side}", tmp_path / "home" / f"journal.db{side}")
    before = listing(tmp_path / "home")
    with peek(tmp_path / "home" / "journal.db") as view:
        assert view is not None
        assert view.stats().undelivered == 1
    assert listing(tmp_path / "home") == before
    assert names_in(tmp_path / "home") == {"journal.db", "journal.db-wal"}


def test_an_empty_file_is_no_journal_yet(tmp_path: Path) -> None:
    """Another process may be just making it."""
    (tmp_path / "journal.db").touch()
    with peek(tmp_path / "journal.db") as view:
        assert view is None


def test_a_damaged_file_is_told_and_left(tmp_path: Path) -> None:
    """Looking repairs nothing; it says what is wrong and what happens next."""
    (tmp_path / "journal.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(StoreUnavailable, match="journal") as caught, peek(tmp_path / "journal.db"):
        pass
    assert "salvaged" in caught.value.next_step
    assert names_in(tmp_path) == {"journal.db"}


def test_a_journal_without_a_write_ahead_log_is_read(tmp_path: Path) -> None:
    """The rollback mode is told."""
    with Journal(tmp_path / "journal.db", vfs="unix-dotfile") as journal:
        journal.append([turn("a")])
    with peek(tmp_path / "journal.db", max_size=1) as view:
        assert view is not None
        stats = view.stats()
        assert (stats.mode, stats.undelivered, stats.over_size) == ("rollback", 1, True)


def test_status_of_deliveries_is_seen_by_other_processes(tmp_path: Path) -> None:
    """Circuit, last success and last error are in the file."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.journal.append([turn("a")])
    bench.settle()
    bench.taker.refuse = lambda record: ConnectionError("down")
    bench.journal.append([turn("b")])
    bench.run(120)
    with peek(tmp_path / "journal.db") as view:
        assert view is not None
        health = view.stats().health[PROVIDER]
    assert (health.successes, health.last_success) == (1, 1_700_000_000.0)
    assert health.failing >= 5
    assert health.circuit == "open"
    assert health.retry_at is not None
    assert health.last_error == "ConnectionError: down"
    bench.journal.close()


def test_calls_of_hooks_are_kept_by_day(tmp_path: Path) -> None:
    """Calls of the last seven days are added up; those of a month ago are gone."""
    bench = Bench(tmp_path / "journal.db", Taker())

    def calls(seconds: float, number: int, **more: object) -> HookStats:
        latency = Latency()
        for _ in range(number):
            latency.add(seconds)
        return HookStats(latency, calls=number, **more)  # type: ignore[arg-type]

    bench.journal.add_hooks(PROVIDER, {"prefetch": calls(0.1, 10, last_ok=5.0)})
    bench.clock.pass_(86400)
    bench.journal.add_hooks(PROVIDER, {"prefetch": calls(1.0, 2, errors=1, last_error="slow", last_ok=6.0)})
    bench.journal.add_hooks(PROVIDER, {"sync_turn": calls(0.01, 1, timeouts=1)})
    hooks = bench.journal.stats().hooks[PROVIDER]
    assert (hooks["prefetch"].calls, hooks["prefetch"].errors, hooks["prefetch"].last_ok) == (12, 1, 6.0)
    assert hooks["prefetch"].last_error == "slow"
    assert hooks["prefetch"].latency.quantile(0.5) == pytest.approx(0.1, rel=0.15)
    assert hooks["prefetch"].latency.quantile(0.99) == pytest.approx(1.0, rel=0.15)
    assert hooks["sync_turn"].timeouts == 1
    bench.clock.pass_(10 * 86400)
    assert bench.journal.stats().hooks == {}
    bench.clock.pass_(40 * 86400)
    bench.journal.add_hooks(PROVIDER, {"prefetch": calls(0.1, 1)})
    con = sqlite3.connect(tmp_path / "journal.db")
    assert con.execute("SELECT count(*) FROM hook").fetchone() == (1,)
    con.close()
    bench.journal.close()
