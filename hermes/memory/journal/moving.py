"""What was kept in memory while the disk refused goes to the disk, after what is there already."""

from __future__ import annotations

import sqlite3

from hermes.memory.journal import sessions, settling
from hermes.memory.journal.encoding import load
from hermes.memory.journal.records import Kind

_AS_THEY_ARE = ("owner", "health", "ingested", "hook")


def move_all(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Write what *source* holds into *target*, in the same order, within its transaction."""
    for table in ("record", *_AS_THEY_ARE):
        columns = [row[1] for row in source.execute(f"PRAGMA table_info({table})") if row[1] != "seq"]
        names = ", ".join(columns)
        order = " ORDER BY seq" if table == "record" else ""
        target.executemany(
            f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608
            source.execute(f"SELECT {names} FROM {table}{order}"),  # noqa: S608
        )
    _move_sessions(source, target)


def _move_sessions(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    for kind, provider, session, key, payload in source.execute(
        "SELECT kind, provider, session, key, payload FROM record "
        "WHERE kind IN ('session_end', 'session_switch') ORDER BY seq"
    ):
        if kind == Kind.SESSION_END:
            sessions.note_end(target, provider, session, key)
        elif load(payload).get("rewound"):
            settling.take_back(target, provider, session, key)
    target.executemany(
        "INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (provider, session) DO UPDATE SET "
        "owner = excluded.owner, linger = max(linger, excluded.linger), ending = excluded.ending, "
        "continues = CASE WHEN excluded.continues = '' THEN continues ELSE excluded.continues END",
        source.execute("SELECT * FROM session").fetchall(),
    )
