"""A home with a store of an older format opens as it is, loses nothing, and keeps a copy."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local import schema
from hermes.plugins.memory.local.migrations import MIGRATIONS
from hermes.plugins.memory.local.provider import LocalMemoryProvider

Open = Callable[..., LocalMemoryProvider]

FIRST_FORMAT = """
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    turns INTEGER NOT NULL DEFAULT 0, messages INTEGER NOT NULL DEFAULT 0,
    terms INTEGER NOT NULL DEFAULT 0);
CREATE TABLE authors (
    id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (scope, name));
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL DEFAULT '',
    next INTEGER NOT NULL DEFAULT 0, first REAL NOT NULL DEFAULT 0, last REAL NOT NULL DEFAULT 0);
CREATE INDEX session_names ON sessions (name, scope);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, role INTEGER NOT NULL, author INTEGER NOT NULL, time REAL NOT NULL,
    terms TEXT NOT NULL, text TEXT NOT NULL, key BLOB);
CREATE UNIQUE INDEX turn_keys ON messages (key) WHERE key IS NOT NULL;
CREATE VIRTUAL TABLE passages USING fts5 (
    terms, content = '', detail = none, columnsize = 0, tokenize = "ascii tokenchars '-_./:@+#\\~&='");
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (passages, row);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = 1752329587;
PRAGMA user_version = 1;
"""


@pytest.fixture
def old(home: Path) -> Path:
    """A file of the first format with a session of two turns, one of another person, and a note."""
    path = home / "local" / "memory.db"
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(FIRST_FORMAT)
        db.executemany(
            "INSERT INTO scopes VALUES (?, ?, ?, ?, ?)",
            [(1, "owner", 2, 4, 12), (2, "user:telegram:u1", 1, 1, 3)],
        )
        db.execute("INSERT INTO authors VALUES (1, 1, 'Ann')")
        db.executemany(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(1, 1, "s1", "", 3, 5.0, 6.0), (2, 2, "s2", "", 1, 7.0, 7.0), (3, 1, "", "user", 1, 8.0, 8.0)],
        )
        rows = [
            (1 << 20, 0, 1, 5.0, "my locker code is 4471", "My locker code is 4471", b"k" * 16),
            ((1 << 20) + 1, 1, 0, 5.0, "noted", "Noted.", None),
            ((1 << 20) + 2, 0, 1, 6.0, "and the door", "And the door", None),
            (2 << 20, 0, 0, 7.0, "a secret zebra", "A secret zebra", None),
            (3 << 20, 2, 0, 8.0, "like tea", "likes tea", None),
        ]
        db.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        db.executemany(
            "INSERT INTO passages (rowid, terms) VALUES (?, ?)",
            [(row[0] << 6, f"{row[4]} §{2 if row[0] >> 20 == 2 else 1}") for row in rows],
        )
        db.commit()
    return path


def call(provider: LocalMemoryProvider, tool: str, **args: Any) -> Any:
    """What a tool answers."""
    return json.loads(provider.handle_tool_call(tool, args))


def test_everything_is_still_there(open_local: Open, old: Path) -> None:
    """Texts, times, authors, people, counts and the index: found, exported, and added to."""
    provider = open_local("now")
    assert [(r["text"], r["time"], r.get("author"), r.get("scope")) for r in provider.export_records()] == [
        ("My locker code is 4471", 5.0, "Ann", None),
        ("Noted.", 5.0, None, None),
        ("And the door", 6.0, "Ann", None),
        ("A secret zebra", 7.0, None, "user:telegram:u1"),
        ("likes tea", 8.0, None, None),
    ]
    assert "4471" in provider.prefetch("what is my locker code?")
    assert provider.search_records("zebra") == []
    provider.sync_turn("a new line about the locker", "", session_id="s1")
    call(provider, "local_remember", text="The locker is in hall B")
    texts = [r["text"] for r in provider.search_records("locker") or []]
    assert sorted(texts)[:3] == ["And the door", "My locker code is 4471", "The locker is in hall B"]
    shown = provider.get_status_config({})
    assert (shown["turns"], shown["sessions"], shown["notes"], shown["people"], shown["facts"]) == (
        4,
        2,
        1,
        2,
        1,
    )
    with contextlib.closing(sqlite3.connect(old)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_looking_brings_it_up_to_date_too(open_local: Open, old: Path) -> None:
    """A search alone is enough, and the copy of what was there is private and whole."""
    assert open_local("now").search_records("locker")
    copy = schema.backup_path(old, 1)
    assert [path.name for path in old.parent.glob("*.before-*")] == [copy.name]
    assert copy.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (5,)


def test_the_copy_goes_with_the_first_forgetting(open_local: Open, old: Path) -> None:
    """What is forgotten does not live on in it."""
    provider = open_local("now")
    assert provider.forget_records(session_id="s1") == 3
    provider.shutdown()
    assert b"4471" not in b"".join(path.read_bytes() for path in old.parent.iterdir())


_OPENER = """
import sys
from hermes.plugins.memory.local.provider import LocalMemoryProvider
p = LocalMemoryProvider()
p.initialize("n" + sys.argv[2], hermes_home=sys.argv[1], platform="cli")
p.sync_turn("line of process " + sys.argv[2], "")
p.shutdown()
"""


def test_processes_that_open_it_at_once(home: Path, old: Path, open_local: Open) -> None:
    """One of them brings it up to date, the others find it so; the copy is of the old format."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _OPENER, str(home), str(n)], stderr=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    texts = [record["text"] for record in open_local("after").export_records()]
    assert len(texts) == 5 + 4
    assert [path.name for path in old.parent.glob("*.before-*")] == ["memory.db.before-2"]
    with contextlib.closing(sqlite3.connect(schema.backup_path(old, 1))) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_disk_without_room_for_the_copy(
    open_local: Open, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is changed, the error names the file, and half a copy does not stay behind."""
    before = old.read_bytes()
    real = schema._copy

    def fails(db: sqlite3.Connection, backup: Path) -> Path:
        real(db, backup).unlink()
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(schema, "_copy", fails)
    from hermes.errors import StoreUnavailable

    with pytest.raises(StoreUnavailable, match="full"):
        open_local("now").sync_turn("x", "")
    with contextlib.closing(sqlite3.connect(old)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
    assert list(old.parent.glob("*.before-*")) == []
    assert before[:16] == old.read_bytes()[:16]
