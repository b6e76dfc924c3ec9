"""The contract of a store, on SQLite; and what only a file can get wrong: locks, logs, formats."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.errors import StoreUnavailable
from hermes.plugins.memory.local import connections, schema, writing
from hermes.plugins.memory.local.migrations import MIGRATIONS
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.records import OWNER, Role, Store, Turn
from hermes.plugins.memory.local.store import SqliteStore

Open = Callable[..., LocalMemoryProvider]


@pytest.fixture
def path(home: Path) -> Path:
    """Where the file of a profile lies."""
    return home / "local" / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """An empty store."""
    opened = SqliteStore(path)
    yield opened
    opened.close()


def turn(text: str, session: str = "s", *, time: float = 1.0, key: str = "") -> Turn:
    """A turn with one half."""
    return Turn(session, text, "", time, key=key)


def bytes_below(folder: Path) -> bytes:
    """The content of every file in *folder*."""
    return b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


# -- what any store must do ---------------------------------------------------------------------------------


def test_postings_are_newest_first_and_bounded(store: Store) -> None:
    """A limit keeps the newest sessions, and the total says roughly how many there are."""
    store.add([turn(f"zebra {i}", f"s{i}") for i in range(50)], OWNER)
    with store.view(OWNER) as view:
        assert view is not None
        some = view.postings("zebra", 10)
        every = view.postings("zebra", 100)
        assert some.ids == every.ids[:10] == sorted(every.ids, reverse=True)[:10]
        assert every.total == 50
        assert 40 <= some.total <= 60
        assert view.postings("zeb", 10).ids == []
        assert len(view.postings("zeb", 100, prefix=True).ids) == 50


def test_candidates_come_with_their_neighbours(store: Store) -> None:
    """Neighbours are those of the same session, in order, whatever was stored in between."""
    for i in range(5):
        store.add([turn(f"a{i}", "a"), turn(f"b{i}", "b")], OWNER)
    with store.view(OWNER) as view:
        assert view is not None
        (middle,) = view.postings("a2", 5).ids
        found = view.candidates([middle], around=1)
        assert sorted((c.place, c.terms.split()[0]) for c in found) == [(1, "a1"), (2, "a2"), (3, "a3")]
        assert len({c.session for c in found}) == 1
        assert [r.text for r in view.records([middle])] == ["a2"]


def test_a_view_shows_one_scope(store: Store) -> None:
    """Ids of another scope are not found, not shown and not deleted."""
    store.add([turn("zebra one")], "u1")
    store.add([turn("zebra two")], "u2")
    with store.view("u1") as one, store.view("u2") as two:
        assert one is not None
        assert two is not None
        (foreign,) = two.postings("zebra", 9).ids
        assert len(one.postings("zebra", 9).ids) == 1
        assert one.candidates([foreign]) == []
        assert one.records([foreign]) == []
        assert one.size.messages == 1
        assert one.between(0, 9, 9) != two.between(0, 9, 9)
    assert store.forget("u1", ids=[foreign]) == 0
    with store.view("u3") as nobody:
        assert nobody is None


def test_between_finds_by_time(store: Store) -> None:
    """Start included, end excluded, over sessions that reach into the span."""
    store.add([turn(f"t{i}", f"s{i // 4}", time=float(i)) for i in range(12)], OWNER)
    with store.view(OWNER) as view:
        assert view is not None
        assert {r.time for r in view.records(view.between(3.0, 7.0, 99))} == {3.0, 4.0, 5.0, 6.0}
        assert len(view.between(0.0, 99.0, 5)) == 5


def test_listing_is_newest_first_or_in_order(store: Store) -> None:
    """With a limit the newest by time; without one everything, more than one batch of it."""
    store.add([turn(f"t{i}", f"s{i % 3}", time=float(i)) for i in range(1201)], OWNER)
    assert [r.time for r in store.listing(OWNER, limit=3)] == [1200.0, 1199.0, 1198.0]
    assert len(list(store.listing(OWNER))) == 1201
    assert [r.time for r in store.listing(OWNER, session_id="s1", limit=2)] == [1198.0, 1195.0]


def test_forgetting_counts_and_leaves_the_rest(store: Store) -> None:
    """By id, by session, or all; the counts of what is left are right."""
    store.add(
        [Turn("a", "one", "two", 1.0), Turn("a", "three", "", 2.0), Turn("b", "four", "five", 3.0)], OWNER
    )
    first = next(iter(store.listing(OWNER)))
    assert store.forget(OWNER, ids=[first.id]) == 1
    assert (store.totals().turns, store.totals().messages, store.totals().sessions) == (3, 4, 2)
    assert store.forget(OWNER, session_id="a") == 2
    assert (store.totals().turns, store.totals().messages, store.totals().sessions) == (1, 2, 1)
    assert store.forget(OWNER, session_id="no such") == 0
    assert store.forget(None) == 2
    assert (store.totals().turns, store.totals().messages, store.totals().sessions) == (0, 0, 0)
    store.add([turn("again", "a")], OWNER)
    assert [r.text for r in store.listing(OWNER)] == ["again"]


def test_a_long_text_is_found_by_any_part(store: Store) -> None:
    """Passages are indexed one by one, and deleted one by one."""
    words = " ".join(f"word{i}" for i in range(20_000))
    store.add([turn(words)], OWNER)
    with store.view(OWNER) as view:
        assert view is not None
        for term in ("word0", "word777", "word19999"):
            assert len(view.postings(term, 9).ids) == 1
    store.forget(OWNER, session_id="s")
    store.add([turn("other")], OWNER)
    with store.view(OWNER) as view:
        assert view is not None
        assert view.postings("word777", 9).ids == []


def test_a_session_longer_than_its_numbers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is full goes on under another number and keeps its name and order."""
    monkeypatch.setattr(writing, "SESSION_LIMIT", 10)
    store.add([turn(f"t{i}") for i in range(35)], OWNER)
    store.add([turn("last")], OWNER)
    assert [r.text for r in store.listing(OWNER, session_id="s")] == [*(f"t{i}" for i in range(35)), "last"]


# -- deletion down to the bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["ids", "session", "everything", "note", "replaced note"])
def test_no_byte_of_what_is_forgotten_stays(open_local: Open, home: Path, how: str) -> None:
    """Neither text nor search terms are left in any file, the log and the index included."""
    provider = open_local("s1")
    filler = [
        {"user_content": f"ordinary line number {i} about tea", "session_id": f"f{i % 9}"} for i in range(400)
    ]
    provider.sync_turns(filler)
    provider.sync_turn(
        "the secret word is xylophagerz", "Xylophagerz, understood.", session_id="s1", turn_author="Xylo"
    )
    provider.on_memory_write("add", "memory", "secret: xylophagerz")
    provider.sync_turns([f | {"session_id": "g"} for f in filler])
    assert b"xylophagerz" in bytes_below(home)
    if how != "note" and how != "replaced note":
        provider.on_memory_write("remove", "memory", "secret: xylophagerz")
    if how == "ids":
        ids = [r["id"] for r in provider.search_records("xylophagerz") or []]
        provider.handle_tool_call("local_forget", {"ids": ids})
    elif how == "everything":
        provider.forget_records()
    else:
        provider.forget_records(session_id="s1")
    if how == "note":
        provider.on_memory_write("remove", "memory", "secret: xylophagerz")
    if how == "replaced note":
        provider.on_memory_write(
            "replace", "memory", "no secrets", {"previous_content": "secret: xylophagerz"}
        )
    assert b"xylophage" not in bytes_below(home).lower()
    assert b"Xylo" not in bytes_below(home)
    assert provider.prefetch("xylophagerz") == ""
    provider.shutdown()
    assert b"xylophage" not in bytes_below(home).lower()


def test_a_scrub_that_a_reader_prevented_is_made_up_for(path: Path) -> None:
    """While another process reads, the log cannot be emptied; the next opening does it."""
    store = SqliteStore(path)
    store.add([turn("xylophagerz")], OWNER)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        with store._connections.write() as db:
            writing.delete(db, [r.id for r in store.listing(OWNER)])
            schema.owe_scrub(db)
        assert not store._connections.scrub(seconds=0.1)
        store.close()
        assert b"xylophage" in bytes_below(path.parent)
    again = SqliteStore(path)
    again.add([turn("new")], OWNER)
    assert b"xylophage" not in bytes_below(path.parent)
    again.close()


# -- several at once -----------------------------------------------------------------------------------------


def test_a_refused_write_leaves_no_transaction_open(store: SqliteStore, path: Path) -> None:
    """After a duplicate and after a failure another connection can write at once."""
    store.add([turn("x", key="k")], OWNER)
    store.add([turn("x", key="k")], OWNER)
    with pytest.raises(StoreUnavailable), store._connections.write() as db:
        db.execute("INSERT INTO scopes (key) VALUES (?)", (OWNER,))
    with contextlib.closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute("INSERT INTO facts VALUES ('x', 'y')")
        other.commit()


def test_a_lock_held_too_long_is_reported_and_nothing_is_half_done(path: Path) -> None:
    """The error says that others kept it busy, and the turn can be stored afterwards."""
    store = SqliteStore(path, busy_seconds=0.2)
    store.add([turn("first")], OWNER)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="busy"):
            store.add([turn("second")], OWNER)
        other.execute("ROLLBACK")
    store.add([turn("second")], OWNER)
    assert [r.text for r in store.listing(OWNER)] == ["first", "second"]
    store.close()


_WRITER = """
import sys
from hermes.plugins.memory.local.provider import LocalMemoryProvider
home, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
p = LocalMemoryProvider()
p.initialize("s" + me, hermes_home=home, platform="cli")
for i in range(count):
    p.sync_turn(f"process {me} says zebra {i}", "ok", idempotency_key=f"{me}-{i}")
    if i % 5 == 0:
        p.search_records("zebra")
p.shutdown()
"""


def test_processes_at_once_lose_nothing(home: Path, open_local: Open) -> None:
    """Eight processes that write and search from the first moment on: no error, every turn once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(home), str(n), "25"], stderr=subprocess.PIPE, text=True
        )
        for n in range(8)
    ]
    for process in running:
        _, errors = process.communicate(timeout=100)
        assert (process.returncode, errors) == (0, "")
    provider = open_local("after")
    said = [r["text"] for r in provider.export_records() if r["role"] == "user"]
    assert len(said) == len(set(said)) == 200
    with contextlib.closing(sqlite3.connect(home / "local" / "memory.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_processes_without_a_write_ahead_log(home: Path, open_local: Open) -> None:
    """On a network file system two writers wait for one another: nothing is lost or damaged."""
    code = (
        "from hermes.plugins.memory.local import connections\nconnections.file_system = lambda path: 'nfs4'\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code + _WRITER, str(home), str(n), "50"], stderr=subprocess.PIPE, text=True
        )
        for n in range(2)
    ]
    for process in running:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    with contextlib.closing(sqlite3.connect(home / "local" / "memory.db")) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM messages WHERE role = 0").fetchone() == (100,)


def test_a_killed_writer_loses_nothing_acknowledged(home: Path, open_local: Open) -> None:
    """Every turn acknowledged before a SIGKILL is there, and the file can be written at once."""
    code = _WRITER.replace('"ok", id', '"ok", id').replace(
        "if i % 5 == 0:", "print(i, flush=True)\n    if False:"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home), "k", "100000"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        process.kill()
        acknowledged = 20 + len(process.stdout.read().splitlines())
    provider = open_local("after")
    provider.sync_turn("alive", "")
    kept = [r for r in provider.export_records() if r["text"].startswith("process")]
    assert len(kept) >= acknowledged - 1  # the last line may have been cut off by the kill


def test_threads_share_one_provider(open_local: Open) -> None:
    """Writes and searches from many threads at once neither fail nor lose anything."""
    provider = open_local()
    failures: list[BaseException] = []

    def work(me: int) -> None:
        try:
            for i in range(20):
                provider.sync_turn(f"thread {me} zebra {i}", "", session_id=f"t{me}")
                provider.prefetch("zebra thread")
        except BaseException as exc:  # noqa: BLE001 - whatever it was, the test shows it
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(provider.export_records())) == 120


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_opens_its_own(open_local: Open) -> None:
    """Connections that came with a fork are not used: both processes go on."""
    provider = open_local()
    provider.sync_turn("before", "")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            provider.sync_turn("in the child", "")
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    provider.sync_turn("after", "")
    assert [r["text"] for r in provider.export_records()] == ["before", "in the child", "after"]


# -- file systems and formats --------------------------------------------------------------------------------


def test_where_wal_is_refused_it_goes_on_and_says_so(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file system without shared memory gets a rollback journal; status names it; nothing else changes."""
    store = SqliteStore(path, vfs="unix-dotfile")
    for i in range(20):
        store.add([turn(f"zebra {i}")], OWNER)
    assert store.totals().journal_mode == "delete"
    assert "no write-ahead log" in caplog.text
    store.forget(OWNER, session_id="s")
    assert b"zebra" not in bytes_below(path.parent)
    store.close()


def test_a_network_file_system_gets_no_wal(
    open_local: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On NFS and its like the log would be corrupted without a refusal, so it is not asked for."""
    monkeypatch.setattr(connections, "file_system", lambda path: "nfs4")
    provider = open_local()
    provider.sync_turn("x", "")
    assert provider.get_status_config({})["journal"].startswith("delete")


def test_the_file_system_is_told_by_the_longest_mount(tmp_path: Path) -> None:
    """/proc is a file system of its own below /."""
    assert connections.file_system(Path("/proc/self/status")) == "proc"
    assert connections.file_system(tmp_path) != "proc"


def test_a_newer_store_is_refused(store: SqliteStore, path: Path) -> None:
    """A file of a later format is neither read nor written, and the message says what to do."""
    store.add([turn("x")], OWNER)
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    for attempt in (lambda: store.add([turn("y")], OWNER), lambda: list(store.listing(OWNER))):
        with pytest.raises(StoreUnavailable, match="newer hermes") as caught:
            attempt()
        assert caught.value.next_step == "upgrade hermes"


def test_someone_elses_database_is_refused(path: Path, store: SqliteStore) -> None:
    """A database with other tables is left alone."""
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreUnavailable, match="is not a store"):
        store.add([turn("x")], OWNER)


def test_a_migration_keeps_a_copy_first(store: SqliteStore, path: Path) -> None:
    """Forwards only; the copy is private and is gone when something is forgotten."""
    store.add([turn("kept")], OWNER)
    store.close()
    later = (*MIGRATIONS, "ALTER TABLE sessions ADD COLUMN colour TEXT")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        schema.bring_up_to_date(db, path, later)
        assert db.execute("SELECT colour FROM sessions").fetchone() == (None,)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    copy = schema.backup_path(path, len(MIGRATIONS))
    assert copy.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT text FROM messages").fetchone() == ("kept",)
    store.forget(OWNER, session_id="s")
    assert not copy.exists()


def test_a_failed_migration_changes_nothing(store: SqliteStore, path: Path) -> None:
    """A step that breaks off leaves the file as it was."""
    store.add([turn("kept")], OWNER)
    store.close()
    broken = (*MIGRATIONS, "CREATE TABLE extra (x); CREATE TABLE extra (x)")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        with pytest.raises(sqlite3.OperationalError):
            schema.bring_up_to_date(db, path, broken)
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'extra'").fetchone() == (0,)
    assert [r.text for r in store.listing(OWNER)] == ["kept"]


def test_two_processes_may_create_it_at_once(path: Path) -> None:
    """Making the tables is one transaction: whoever comes second finds them."""
    stores = [SqliteStore(path) for _ in range(4)]
    gate = threading.Barrier(4)
    failures: list[BaseException] = []

    def work(store: SqliteStore, n: int) -> None:
        try:
            gate.wait()
            store.add([turn(f"t{n}")], OWNER)
        except BaseException as exc:  # noqa: BLE001 - whatever it was, the test shows it
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(s, n)) for n, s in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(stores[0].listing(OWNER))) == 4
    for store in stores:
        store.close()


def test_a_full_disk_loses_nothing_stored(home: Path) -> None:
    """A write past the limit of a file's size is refused as a whole; what was stored stays readable."""
    code = f"""
import resource, signal, sys, json
from hermes.errors import StoreUnavailable
from hermes.plugins.memory.local.provider import LocalMemoryProvider
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
p = LocalMemoryProvider()
p.initialize("s", hermes_home={str(home)!r}, platform="cli")
p.sync_turn("first", "")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
stored, refused = 1, 0
for i in range(60):
    try:
        p.sync_turn("long " * 4000 + str(i), "")
        stored += 1
    except StoreUnavailable:
        refused += 1
print(json.dumps([stored, refused, len(list(p.export_records()))]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    stored, refused, found = json.loads(done.stdout.splitlines()[-1])
    assert refused > 0
    assert stored == found


def test_roles_have_labels() -> None:
    """The export names roles in words."""
    assert [role.label for role in Role] == ["user", "assistant", "note", "fact"]
