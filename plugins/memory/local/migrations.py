"""The steps that bring a file of an older format up to date, in order; each is one transaction's worth of SQL.

A step that was released is never changed: what is wrong with it is mended by the next.
"""

from __future__ import annotations

# A message's id is its session's id and its place there, so that its neighbours are the ids around it. Its
# passages are rows of the full-text index, which holds terms made in text.py and splits them at spaces alone.
# The table `facts` holds what is true of the file as a whole.
_TURNS = """
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
"""

# A fact that holds is a message too, alone in a session whose target is 'fact': it is searched as every other.
# One that was corrected (by `successor`) or has expired is kept here only. Sessions get numbers that were never
# used before, so that no id comes to mean something else.
_MEMORIES = """
CREATE TABLE memories (
    id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, text TEXT NOT NULL, said BLOB NOT NULL,
    created REAL NOT NULL, session TEXT NOT NULL, turn INTEGER NOT NULL, message INTEGER NOT NULL,
    tool TEXT NOT NULL, person TEXT NOT NULL, used REAL NOT NULL DEFAULT 0, uses INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0, expires REAL, ended REAL, successor INTEGER NOT NULL DEFAULT 0);
CREATE INDEX memories_said ON memories (scope, said);
CREATE INDEX memories_pinned ON memories (scope) WHERE pinned;
CREATE INDEX memories_corrected ON memories (successor) WHERE successor != 0;
CREATE INDEX memories_expiring ON memories (expires) WHERE expires IS NOT NULL AND ended IS NULL;
CREATE TABLE numbered (
    id INTEGER PRIMARY KEY AUTOINCREMENT, scope INTEGER NOT NULL, name TEXT NOT NULL,
    target TEXT NOT NULL DEFAULT '', next INTEGER NOT NULL DEFAULT 0, first REAL NOT NULL DEFAULT 0,
    last REAL NOT NULL DEFAULT 0);
INSERT INTO numbered SELECT id, scope, name, target, next, first, last FROM sessions;
DROP TABLE sessions;
ALTER TABLE numbered RENAME TO sessions;
CREATE INDEX session_names ON sessions (name, scope);
CREATE INDEX session_starts ON sessions (target, first);
"""

# What embedding/vectors.py keeps. Vectors of a model stand in one of two slots, so that a new model is filled beside
# the one in use; a vector's id is its passage's with the slot as the last bit. One-bit codes of many vectors stand
# together in a block; `block` is NULL until a vector is packed. A session is embedded up to the place `upto`.
_VECTORS = """
CREATE TABLE models (
    slot INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, source TEXT NOT NULL, width INTEGER NOT NULL,
    complete INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
    calibration BLOB NOT NULL);
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY, slot INTEGER NOT NULL, scope INTEGER NOT NULL, block INTEGER,
    codes BLOB NOT NULL, tokens BLOB NOT NULL);
CREATE INDEX vectors_loose ON vectors (slot, scope) WHERE block IS NULL;
CREATE TABLE vector_blocks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, slot INTEGER NOT NULL, scope INTEGER NOT NULL, count INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT 0, ids BLOB NOT NULL, bits BLOB NOT NULL);
CREATE INDEX vector_blocks_of ON vector_blocks (slot, scope, id, version, count);
CREATE TABLE embedded (
    slot INTEGER NOT NULL, session INTEGER NOT NULL, upto INTEGER NOT NULL, PRIMARY KEY (slot, session)) WITHOUT ROWID;
"""

MIGRATIONS: tuple[str, ...] = (_TURNS, _MEMORIES, _VECTORS)
