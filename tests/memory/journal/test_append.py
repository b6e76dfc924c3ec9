"""What is appended is on disk, whole, private, and shares nothing with its maker."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import attrs
import pytest

from hermes.memory.journal import Entry, Journal, Kind, State
from tests.memory.journal.support import PROVIDER, end, turn
from tests.support import unprivileged


def test_an_append_is_on_disk_when_it_returns(tmp_path: Path) -> None:
    """What ``append`` called durable is there for whoever opens a copy of the files."""
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([turn("hello")]).durable
        for name in ("journal.db", "journal.db-wal"):
            (tmp_path / f"copy-{name}").write_bytes((tmp_path / name).read_bytes())
        (tmp_path / "copy-journal.db-wal").rename(tmp_path / "copy.db-wal")
        (tmp_path / "copy-journal.db").rename(tmp_path / "copy.db")
        with Journal(tmp_path / "copy.db") as copy:
            assert [record.payload["user"] for record in copy.records()] == ["hello"]


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    """Every field survives closing and opening."""
    entry = Entry(
        Kind.DELEGATION, PROVIDER, "s1", {"task": "t", "n": 1.5, "deep": {"a": [1, None, True]}}, "key", 12.5
    )
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([entry])
    with Journal(tmp_path / "journal.db") as journal:
        (record,) = journal.records()
    assert (record.kind, record.provider, record.session_id) == (Kind.DELEGATION, PROVIDER, "s1")
    assert (record.payload, record.key, record.time) == (entry.payload, "key", 12.5)
    assert (record.state, record.attempts, record.error) == (State.PENDING, 0, "")


def test_nothing_is_shared_with_the_caller(tmp_path: Path) -> None:
    """A list changed after the append is not changed in the journal."""
    messages = [{"role": "user", "content": "before"}]
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([end("s1", messages)])
        messages[0]["content"] = "after"
        messages.append({"role": "user", "content": "more"})
        assert journal.records()[0].payload["messages"] == [{"role": "user", "content": "before"}]


def test_a_key_counts_once_per_provider(tmp_path: Path) -> None:
    """The same key again is left out, for another provider it is another record."""
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([turn("a", key="k"), turn("b", key="l")]).records == 2
        assert journal.append([turn("a again", key="k"), turn("c", key="m")]).records == 1
        assert journal.append([turn("a", key="k", provider="other")]).records == 1
        assert [record.payload["user"] for record in journal.records()] == ["a", "b", "c", "a"]


def test_ingested_keys_are_known_after_delivery(tmp_path: Path) -> None:
    """The ledger remembers by fingerprint what was ingested, per provider, until it is cleared."""
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([turn("a", key="said a"), turn("b", key="b")], ledger=True).records == 2
        journal.drop([record.seq for record in journal.records()])
        assert journal.append([turn("a", key="said a"), turn("c", key="c")], ledger=True).records == 1
        assert journal.ingested(PROVIDER, ["said a", "b", "c", "d"]) == {"said a", "b", "c"}
        assert journal.ingested("other", ["said a"]) == set()
        assert journal.clear_ledger(PROVIDER) == 3
        assert journal.ingested(PROVIDER, ["said a"]) == set()
    assert b"said a" not in (tmp_path / "journal.db").read_bytes().replace(b'"user":"said a"', b"")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Path("/x"), "/x"),
        ("half \ud83d of it", "half \ud83d of it"),
        (float("inf"), float("inf")),
        ({1: "one"}, {"1": "one"}),
        (("a", "b"), ["a", "b"]),
        ("naïve 记忆 ✦", "naïve 记忆 ✦"),
    ],
)
def test_odd_values_are_kept_as_well_as_can_be(tmp_path: Path, value: Any, kept: Any) -> None:
    """What JSON cannot carry becomes its text; half a character survives."""
    entry = attrs.evolve(turn("x"), payload={"user": "x", "assistant": "y", "odd": value})
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([entry]).durable
        assert journal.records()[0].payload["odd"] == kept


def test_what_cannot_be_written_at_all_is_named(tmp_path: Path) -> None:
    """A part that refers to itself is dropped and named; the turn is kept."""
    endless: list[Any] = []
    endless.append(endless)
    entry = attrs.evolve(
        turn("x"), payload={"user": "x", "assistant": "y", "odd": endless, "more": {(1, 2): 3}}
    )
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([entry]).durable
        payload = journal.records()[0].payload
        assert payload["user"] == "x"
        assert payload["dropped"] == ["odd", "more"]


def test_half_a_character_in_a_name_stops_nothing(tmp_path: Path) -> None:
    """A session named with half a character is written under a readable name."""
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([turn("x", "s\ud83d")]).durable
        assert journal.records()[0].session_id == "s?"


def test_a_large_append_is_complete_and_in_order(tmp_path: Path) -> None:
    """Several thousand entries in one call keep their order."""
    with Journal(tmp_path / "journal.db") as journal:
        done = journal.append([turn(str(n), f"s{n % 7}") for n in range(5000)])
        assert (done.durable, done.records) == (True, 5000)
        found = [record.payload["user"] for record in journal.records(limit=10_000)]
        assert found == [str(n) for n in range(5000)]


def test_threads_share_commits_and_lose_nothing(tmp_path: Path) -> None:
    """Eight threads at once: everything is there, each thread's records in its order, duplicates counted right."""
    counts = []
    with Journal(tmp_path / "journal.db") as journal:

        def work(name: int) -> None:
            new = 0
            for number in range(100):
                new += journal.append([turn(str(number), f"s{name}", key=f"{name}-{number}")]).records
                if number % 10 == 0:
                    new += journal.append([turn("again", f"s{name}", key=f"{name}-{number}")]).records
            counts.append(new)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [100] * 8
        for name in range(8):
            said = [r.payload["user"] for r in journal.records(session_id=f"s{name}", limit=1000)]
            assert said == [str(n) for n in range(100)]


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_the_files_are_private_from_birth(tmp_path: Path) -> None:
    """The journal and its side files are 0600 and its folder 0700, whatever the umask."""
    old = os.umask(0)
    try:
        with Journal(tmp_path / "home" / "journal.db") as journal:
            journal.append([turn("x")])
            for file in (tmp_path / "home").iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
            assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
            assert {f.name for f in (tmp_path / "home").iterdir()} >= {"journal.db-wal", "journal.db-shm"}
    finally:
        os.umask(old)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_journal_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """A file with a wider mode is tightened when it is opened."""
    (tmp_path / "journal.db").touch(0o644)
    with Journal(tmp_path / "journal.db"):
        assert stat.S_IMODE((tmp_path / "journal.db").stat().st_mode) == 0o600


def test_without_a_file_nothing_is_called_durable() -> None:
    """A journal in memory works, and says that it is none on disk."""
    with Journal(None) as journal:
        done = journal.append([turn("a"), turn("b")])
        assert (done.durable, done.records) == (False, 2)
        assert "no journal file" in done.reason
        assert journal.stats().mode == "memory"
        assert journal.stats().undelivered == journal.stats().held == 2


def test_an_append_after_the_end_is_still_durable(tmp_path: Path) -> None:
    """A straggler that appends to a closed journal loses nothing, and leaves no file open."""
    journal = Journal(tmp_path / "journal.db")
    journal.close()
    assert journal.append([turn("late")]).durable
    assert not (tmp_path / "journal.db-wal").exists()
    with Journal(tmp_path / "journal.db") as again:
        assert again.stats().undelivered == 1


def test_a_forked_child_uses_a_connection_of_its_own(tmp_path: Path) -> None:
    """Parent and child append after a fork; both are there and the file is sound."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("before")])
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if journal.append([turn("child", key="child")]).durable else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert journal.append([turn("parent")]).durable
        assert journal.stats().mode == "wal"
        assert sorted(r.payload["user"] for r in journal.records()) == ["before", "child", "parent"]


def test_a_journal_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    """A file with a format from the future is not touched; records are kept in memory and the reason is said."""
    import sqlite3

    con = sqlite3.connect(tmp_path / "journal.db")
    con.execute("PRAGMA user_version = 99")
    con.close()
    before = (tmp_path / "journal.db").read_bytes()
    with Journal(tmp_path / "journal.db") as journal:
        done = journal.append([turn("x")])
        assert not done.durable
        assert "later version" in done.reason
        assert journal.stats().undelivered == 1
    assert (tmp_path / "journal.db").read_bytes()[100:] == before[100:]
    assert not list(tmp_path.glob("*.damaged-*"))


def test_opening_makes_no_file(tmp_path: Path) -> None:
    """The file is made by the first append; looking at a journal that is not there shows an empty one."""
    with Journal(tmp_path / "home" / "journal.db") as journal:
        assert journal.records() == []
        assert journal.stats().undelivered == 0
        assert journal.get(1) is None
    assert not (tmp_path / "home").exists()


def test_a_deleted_home_is_not_made_again(tmp_path: Path) -> None:
    """Where the profile was deleted under an open journal, an append is kept in memory and says why."""
    import shutil

    with Journal(tmp_path / "home" / "journal.db") as journal:
        assert journal.append([turn("x")]).durable
        shutil.rmtree(tmp_path / "home")
        done = journal.append([turn("y")])
        assert not done.durable
        assert "gone" in done.reason
    assert not (tmp_path / "home").exists()


def test_stats_can_be_printed(tmp_path: Path) -> None:
    """What status shows is made of plain values."""
    with Journal(tmp_path / "journal.db", max_size=10) as journal:
        journal.append([turn("x", at=5.0)])
        stats = journal.stats()
        assert (stats.mode, stats.undelivered, stats.oldest, stats.over_size) == ("wal", 1, 5.0, True)
        json.dumps(attrs.asdict(stats), default=str)


def test_a_folder_that_refuses_is_no_error(tmp_path: Path) -> None:
    """Where the home cannot be made, turns are kept in memory and the reason is told."""

    def check() -> None:
        with Journal(Path("/proc/none/journal.db")) as journal:
            done = journal.append([turn("x")])
            assert (done.durable, done.records) == (False, 1)
            assert done.reason
            assert journal.stats().held == 1

    unprivileged(check)


def test_a_ctrl_c_within_a_commit_loses_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is interrupted while it writes for others as well: what was to be written is kept, and written next."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("first")])
        add = journal.store._add

        def interrupted(con: Any, jobs: Any) -> Any:
            add(con, jobs)
            if con is journal.store.disk._con:  # type: ignore[union-attr]
                raise KeyboardInterrupt
            return [1]

        monkeypatch.setattr(journal.store, "_add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.append([turn("second")])
        monkeypatch.setattr(journal.store, "_add", add)
        assert journal.stats().held == 1
        assert journal.append([turn("third")]).durable
        assert [record.payload["user"] for record in journal.records()] == ["first", "second", "third"]
        assert journal.stats().held == 0
