"""What a crash, a power cut or a damaged disk leaves behind opens again; nothing that can be read is lost."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from hermes.memory.journal import Journal, peek, schema
from tests.memory.journal.support import Bench, Taker, end, turn


def said(journal: Journal) -> list[str]:
    """What the person said, as far as it is in the journal."""
    return [record.payload["user"] for record in journal.records(limit=100_000)]


def copy(source: Path, folder: Path) -> Path:
    """Copy a journal with its write-ahead log, as a power cut would leave it."""
    folder.mkdir()
    for side in ("", "-wal"):
        if Path(f"{source}{side}").exists():
            shutil.copyfile(f"{source}{side}", folder / f"journal.db{side}")
    return folder / "journal.db"


def test_a_copy_between_any_two_writes_opens(tmp_path: Path) -> None:
    """A copy taken after each append holds exactly what was acknowledged by then."""
    with Journal(tmp_path / "journal.db") as journal:
        for number in range(25):
            assert journal.append([turn(str(number))]).durable
            with Journal(copy(tmp_path / "journal.db", tmp_path / f"copy{number}")) as left:
                assert said(left) == [str(n) for n in range(number + 1)]


def test_a_copy_between_deliveries_opens(tmp_path: Path) -> None:
    """While records are delivered, every copy of the files opens, and what was not delivered is in it."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.journal.append([turn(str(n), f"s{n % 3}") for n in range(30)], open_sessions=False)
    copies = 0
    while bench.deliverer.step() == 0.0:
        copies += 1
        with Journal(copy(tmp_path / "journal.db", tmp_path / f"copy{copies}")) as left:
            assert said(left) == [str(n) for n in range(copies, 30)]
    assert copies == 30
    bench.journal.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_log_cut_at_any_byte_recovers(tmp_path: Path, seed: int) -> None:
    """However short the write-ahead log becomes, a gapless beginning of what was appended is there."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("in the file itself")])
        assert journal.store.disk is not None
        journal.store.disk.truncate_log()
        for number in range(40):
            journal.append([turn(f"{number} {'x' * (number * 97)}")])
        whole = copy(tmp_path / "journal.db", tmp_path / "whole")
    log = (tmp_path / "whole" / "journal.db-wal").read_bytes()
    rng = random.Random(seed)
    cuts = [*rng.sample(range(len(log)), 25), 0, 1, 31, 32, 33, len(log) - 1, len(log)]
    last = -1
    for cut in sorted(cuts):
        folder = tmp_path / f"cut{cut}"
        copy(whole, folder)
        (folder / "journal.db-wal").write_bytes(log[:cut])
        with Journal(folder / "journal.db") as left:
            numbers = [int(text.split()[0]) for text in said(left)[1:]]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) >= last
            last = len(numbers)
            assert left.append([turn("goes on")]).durable
        shutil.rmtree(folder)
    assert last == 40


def test_a_log_with_garbage_at_its_end_recovers(tmp_path: Path) -> None:
    """Bytes of nonsense after the last whole commit are ignored."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("a"), turn("b")])
        left = copy(tmp_path / "journal.db", tmp_path / "copy")
    with (tmp_path / "copy" / "journal.db-wal").open("ab") as log:
        log.write(os.urandom(5000))
    with Journal(left) as again:
        assert said(again) == ["a", "b"]


def filled(path: Path, number: int = 300) -> None:
    """Make a journal of some pages at *path*, everything in the file itself."""
    with Journal(path) as journal:
        journal.append([turn(f"{n} {'x' * 200}", f"s{n % 5}") for n in range(number)])


def test_a_file_that_is_no_journal_is_moved_aside(tmp_path: Path) -> None:
    """A file of nonsense is kept under another name, a new journal is begun, and stats name the old one."""
    (tmp_path / "journal.db").write_bytes(b"this is no database" * 1000)
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.append([turn("x")]).durable
        assert said(journal) == ["x"]
        (kept,) = journal.stats().moved_aside
    assert kept.read_bytes() == b"this is no database" * 1000
    assert kept.name.startswith("journal.db.damaged-")


@pytest.mark.parametrize("where", ["header", "first page", "schema only"])
def test_a_damaged_first_page_loses_no_record(tmp_path: Path, where: str) -> None:
    """The first page tells only where the tables are, which is known: every record is read all the same."""
    filled(tmp_path / "journal.db")
    start, length = {"header": (0, 100), "first page": (0, 4096), "schema only": (100, 3996)}[where]
    with (tmp_path / "journal.db").open("r+b") as file:
        file.seek(start)
        file.write(os.urandom(length))
    with Journal(tmp_path / "journal.db") as journal:
        assert [int(text.split()[0]) for text in said(journal)] == list(range(300))
        assert len(journal.stats().moved_aside) == 1
        assert journal.append([turn("goes on")]).durable


def test_damaged_pages_cost_only_what_was_on_them(tmp_path: Path) -> None:
    """Of a file with some pages overwritten, the records on the other pages are kept, in order."""
    filled(tmp_path / "journal.db", 600)
    size = (tmp_path / "journal.db").stat().st_size
    assert size > 40 * 4096
    with (tmp_path / "journal.db").open("r+b") as file:
        for page in (20, 21, 33):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("9999 new")])
        numbers = [int(text.split()[0]) for text in said(journal)]
    assert numbers == sorted(numbers)
    assert len(numbers) > 400
    assert numbers[-1] == 9999


def test_a_file_cut_in_half_keeps_its_first_half(tmp_path: Path) -> None:
    """Of a file that lost its end, what lies before the cut is read."""
    filled(tmp_path / "journal.db", 600)
    os.truncate(tmp_path / "journal.db", (tmp_path / "journal.db").stat().st_size // 2 // 4096 * 4096)
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("9999 new")])
        numbers = [int(text.split()[0]) for text in said(journal)]
    assert numbers == sorted(numbers)
    assert len(numbers) > 100


def test_damage_while_open_is_noticed_and_mended(tmp_path: Path) -> None:
    """A journal that turns out damaged while it is in use is replaced; the append that found it is durable."""
    filled(tmp_path / "journal.db")
    with Journal(tmp_path / "journal.db") as journal:
        with (tmp_path / "journal.db").open("r+b") as file:
            file.seek(4096)
            file.write(b"\xfe" * 4096 * 3)
        results = [journal.append([turn(f"{n} later")]) for n in range(1000, 1020)]
        assert all(done.durable for done in results)
        assert len(journal.stats().moved_aside) == 1
        assert [text for text in said(journal) if "later" in text] == [
            f"{n} later" for n in range(1000, 1020)
        ]


def test_a_process_notices_that_another_replaced_the_file(tmp_path: Path) -> None:
    """Two have it open; one finds it damaged and replaces it; the other writes to the new one."""
    path = tmp_path / "journal.db"
    filled(path)
    with Journal(path) as first, Journal(path) as second:
        assert second.append([turn("2000 before")]).durable
        from hermes.memory.journal import salvage

        first.store._let_go()
        salvage.replace_damaged(path)
        assert not first.stats().moved_aside  # it was sound: nothing is moved for nothing
        with path.open("r+b") as file:
            file.write(b"\0" * 4096)
        salvage.replace_damaged(path)
        assert second.append([turn("2001 after")]).durable
        assert first.append([turn("2002 after")]).durable
        assert [int(t.split()[0]) for t in said(first) if "after" in t] == [2001, 2002]
        assert said(first) == said(second)


def test_what_was_salvaged_is_delivered_in_order(tmp_path: Path) -> None:
    """Sessions, their order and the end that is owed survive the replacement of the file."""
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        journal.append([turn(f"{n}", f"s{n % 2}") for n in range(20)])
        journal.append([end("s0")])
    with path.open("r+b") as file:
        file.write(os.urandom(4096))
    bench = Bench(path, Taker())
    bench.settle()
    assert bench.taker.said("s0") == [str(n) for n in range(0, 20, 2)]
    assert bench.taker.said("s1") == [str(n) for n in range(1, 20, 2)]
    ends = {
        record.session_id: record.payload["messages"]
        for record in bench.taker.got
        if record.kind == "session_end"
    }
    assert len(ends["s0"]) == 20
    bench.journal.close()


def test_without_a_write_ahead_log_it_works_and_says_so(tmp_path: Path) -> None:
    """A file system that cannot share memory gets a rollback journal; stats tell."""
    with Journal(tmp_path / "journal.db", vfs="unix-dotfile") as journal:
        assert journal.append([turn("a")]).durable
        assert journal.stats().mode == "rollback"
        assert not (tmp_path / "journal.db-wal").exists()
        assert said(journal) == ["a"]
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.stats().mode == "wal"
        assert said(journal) == ["a"]


def test_rollback_mode_survives_a_copy_in_the_middle(tmp_path: Path) -> None:
    """In rollback mode what was acknowledged is in the file itself."""
    with Journal(tmp_path / "journal.db", vfs="unix-dotfile") as journal:
        for number in range(5):
            journal.append([turn(str(number))])
            left = copy(tmp_path / "journal.db", tmp_path / f"copy{number}")
            con = sqlite3.connect(left)
            assert con.execute("SELECT count(*) FROM record").fetchone() == (number + 1,)
            con.close()


def journal_of_format_1(path: Path, *texts: str) -> None:
    """A journal as it was before records knew when they were written down."""
    tables = "\n".join(
        line for line in schema.TABLES.splitlines() if not line.strip().startswith(("added", "undone"))
    )
    tables = tables.replace("payload TEXT NOT NULL,\n)", "payload TEXT NOT NULL\n)")
    with contextlib.closing(sqlite3.connect(path)) as con:
        con.executescript(f"PRAGMA journal_mode = WAL; {tables} PRAGMA user_version = 1;")
        con.executemany(
            "INSERT INTO record (provider, session, kind, key, time, payload) "
            "VALUES ('probe', 's1', 'turn', ?, 1.0, ?)",
            [(f"old{n}", json.dumps({"user": text, "assistant": "x"})) for n, text in enumerate(texts)],
        )
        con.commit()


def test_an_older_journal_is_seen_and_goes_on(tmp_path: Path) -> None:
    """A file of an earlier format is looked at as it is, and brought up to date by who writes; nothing is too old."""
    path = tmp_path / "journal.db"
    journal_of_format_1(path, "one", "two")
    with peek(path) as view:
        assert view is not None
        assert [record.payload["user"] for record in view.records()] == ["one", "two"]
    taker = Taker()
    bench = Bench(path, taker, max_age=60.0)
    assert bench.journal.append([turn("three")]).durable
    bench.active = []
    bench.settle()
    assert bench.journal.stats().dead == 0
    bench.active = ["probe"]
    bench.run(10)
    assert taker.said() == ["one", "two", "three"]
    bench.journal.close()


def test_a_damaged_journal_of_an_older_format_is_salvaged(tmp_path: Path) -> None:
    """What lies in a file of an earlier format is taken over, whether its first page can be read or not."""
    for name, page in (("first", 0), ("later", 40)):
        path = tmp_path / name / "journal.db"
        path.parent.mkdir()
        journal_of_format_1(path, *(f"{n} {'x' * 500}" for n in range(200)))
        with open(path, "r+b") as file:  # noqa: PTH123
            file.seek(page * 4096)
            file.write(os.urandom(2000))
        with Journal(path) as journal:
            journal.append([turn("new")])
            found = said(journal)
            assert found[-1] == "new"
            assert len(found) > 150
            assert journal.stats().moved_aside
