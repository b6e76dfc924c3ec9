"""The tables of the journal."""

from __future__ import annotations

import re
import sqlite3

VERSION = 2

TABLES = """
CREATE TABLE IF NOT EXISTS record (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    time REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending',
    opens TEXT NOT NULL DEFAULT '',           -- of a switch: the session whose records wait for it
    attempts INTEGER NOT NULL DEFAULT 0,
    first_failed REAL,
    successes_then INTEGER NOT NULL DEFAULT 0, -- health.successes at the first failure
    next_try REAL NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    settled REAL,                              -- when it was delivered, handed over or set aside
    confirmed INTEGER NOT NULL DEFAULT 0,
    forget TEXT NOT NULL DEFAULT '',           -- a text to be scrubbed once this record is delivered
    payload TEXT NOT NULL,
    added REAL NOT NULL DEFAULT 0,             -- when it was written down; *time* is when it was said
    undone TEXT NOT NULL DEFAULT ''            -- of a turn: key of the switch that took it back
);
CREATE UNIQUE INDEX IF NOT EXISTS record_key ON record (provider, key);
CREATE INDEX IF NOT EXISTS record_pending ON record (provider, seq, session) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS record_session ON record (provider, session, seq) WHERE state <> 'pending';
CREATE INDEX IF NOT EXISTS record_opens ON record (provider, opens) WHERE opens <> '';
CREATE INDEX IF NOT EXISTS record_settled ON record (state, confirmed, settled) WHERE state <> 'pending';

CREATE TABLE IF NOT EXISTS owner (            -- a process that has sessions open, or delivers
    id TEXT PRIMARY KEY, place TEXT NOT NULL, pid INTEGER NOT NULL, born TEXT NOT NULL, beat INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease (name TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS session (
    provider TEXT NOT NULL,
    session TEXT NOT NULL,
    owner TEXT NOT NULL,
    opened REAL NOT NULL,
    linger REAL NOT NULL DEFAULT 0,           -- Unix time until which it outlives its owner
    ending TEXT NOT NULL DEFAULT '',          -- key of the record that tells of its end
    continues TEXT NOT NULL DEFAULT '',       -- the session it took over from
    PRIMARY KEY (provider, session)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS health (
    provider TEXT PRIMARY KEY,
    successes INTEGER NOT NULL DEFAULT 0,
    last_success REAL,
    failing INTEGER NOT NULL DEFAULT 0,
    last_error TEXT NOT NULL DEFAULT '',
    circuit TEXT NOT NULL DEFAULT 'closed',
    retry_at REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hook (             -- calls of one day
    provider TEXT NOT NULL, hook TEXT NOT NULL, day INTEGER NOT NULL, stats TEXT NOT NULL,
    PRIMARY KEY (provider, hook, day)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ingested (provider TEXT NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (provider, hash))
    WITHOUT ROWID;
"""

FROM_1 = """
ALTER TABLE record ADD COLUMN added REAL NOT NULL DEFAULT 0;
ALTER TABLE record ADD COLUMN undone TEXT NOT NULL DEFAULT '';
UPDATE record SET added = CAST(strftime('%s', 'now') AS REAL);
"""


class NewerJournal(sqlite3.OperationalError):
    """The file was written by a later version of hermes: left alone."""


def create(con: sqlite3.Connection) -> None:
    """Make the tables where they are missing, or raise NewerJournal."""
    (version,) = con.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise NewerJournal(f"written by a later version of hermes (format {version})")
    if version < VERSION:
        con.execute("BEGIN IMMEDIATE")
        try:
            (version,) = con.execute(
                "PRAGMA user_version"
            ).fetchone()  # another process may have been quicker
            for statement in _statements(FROM_1 if version == 1 else TABLES if version < 1 else ""):
                con.execute(statement)
            con.execute(f"PRAGMA user_version = {VERSION}")
            con.execute("COMMIT")
        except BaseException:
            con.execute("ROLLBACK")
            raise


def _statements(script: str) -> list[str]:
    """The statements of *script*: ``executescript`` would commit before the first."""
    return [statement for statement in re.sub(r"--.*", "", script).split(";") if statement.strip()]
