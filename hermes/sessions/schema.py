"""The tables of the transcripts."""

from __future__ import annotations

import sqlite3

VERSION = 1

TABLES = """
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',
    parent TEXT NOT NULL DEFAULT '',
    started REAL NOT NULL,
    updated REAL NOT NULL,
    ended REAL,
    end_reason TEXT NOT NULL DEFAULT '',
    context TEXT NOT NULL DEFAULT ''           -- what the model is given in place of the turns that are summarised
) WITHOUT ROWID;
CREATE INDEX session_updated ON session (updated);

CREATE TABLE turn (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    time REAL NOT NULL,
    state TEXT NOT NULL,                       -- see records.State
    kept INTEGER NOT NULL DEFAULT 0,           -- the memory has it
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE INDEX turn_owed ON turn (session) WHERE state = 'done' AND kept = 0;

CREATE TABLE message (
    session TEXT NOT NULL,
    turn INTEGER NOT NULL,
    place INTEGER NOT NULL,
    time REAL NOT NULL,
    text TEXT NOT NULL,                        -- what is searched
    message TEXT NOT NULL,
    PRIMARY KEY (session, turn, place)
) WITHOUT ROWID;
CREATE VIEW line AS SELECT
    message.session, message.turn, place, message.time, text, message, state,
    state IN ('done', 'interrupted') AS said   -- it belongs to the conversation
    FROM message JOIN turn ON turn.session = message.session AND turn.number = message.turn;
"""


class NewerTranscripts(sqlite3.OperationalError):
    """The file was written by a later version of hermes: left alone."""


def create(con: sqlite3.Connection) -> None:
    """Make the tables where they are missing, or raise NewerTranscripts."""
    (version,) = con.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise NewerTranscripts(f"written by a later version of hermes (format {version})")
    if version == 0:
        con.execute("BEGIN IMMEDIATE")
        if con.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in TABLES.split(";\n"):
                con.execute(statement)
            con.execute(f"PRAGMA user_version = {VERSION}")
        con.execute("COMMIT")
