"""Putting turns and notes into the tables and taking them out, inside the caller's transaction."""

from __future__ import annotations

import functools
import hashlib
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hermes.plugins.memory.local import text, traces
from hermes.plugins.memory.local.records import Role, Turn
from hermes.plugins.memory.local.schema import PASSAGE_BITS, PLACE_BITS, SESSION_LIMIT, scope_term

FACT = "fact"
"""The target of the sessions that facts stand in."""

_ADD_MESSAGE = "INSERT INTO messages (id, role, author, time, terms, text, key) VALUES (?, ?, ?, ?, ?, ?, ?)"
_KEYS_AT_ONCE = 500
_USER, _ASSISTANT = int(Role.USER), int(Role.ASSISTANT)
_SHORT = text.PASSAGE_WORDS * 6
"""Characters of terms that are one passage for sure."""
_ADD_PASSAGE = "INSERT INTO passages (rowid, terms) VALUES (?, ?)"
_DELETE_PASSAGE = "INSERT INTO passages (passages, rowid, terms) VALUES ('delete', ?, ?)"


class Prepared(NamedTuple):
    """A turn as it goes into the tables; made before the write lock is taken."""

    session_id: str
    author: str
    time: float
    key: bytes | None
    parts: list[tuple[int, str, str]]


@dataclass(slots=True)
class _Session:
    id: int
    next: int
    first: float
    last: float
    changed: bool = False


@dataclass(slots=True)
class _Tally:
    turns: int = 0
    terms: int = 0
    rows: list[tuple[int, int, int, float, str, str, bytes | None]] = field(default_factory=list)
    passages: list[tuple[int, str]] = field(default_factory=list)


def prepare(turn: Turn, scope: str) -> Prepared:
    """*turn* with its search terms; an empty half is left out."""
    parts = [
        (role, kept, text.terms(kept))
        for role, said in ((_USER, turn.user), (_ASSISTANT, turn.assistant))
        if (kept := text.storable(said)) and not kept.isspace()
    ]
    key = _digest(scope, turn.session_id, turn.key) if turn.key else None
    return Prepared(text.storable(turn.session_id), text.storable(turn.author), turn.time, key, parts)


def add_turns(db: sqlite3.Connection, turns: Iterable[Prepared], scope: str) -> int:
    """Add *turns*, each key once; how many were new."""
    scope_id = scope_of(db, scope)
    sessions: dict[str, _Session] = {}
    authors: dict[str, int] = {"": 0}
    tally = _Tally()
    turns = list(turns)
    known = _known(db, [turn.key for turn in turns if turn.key is not None])
    for turn in turns:
        if turn.key is not None:
            if turn.key in known:
                continue
            known.add(turn.key)
        session = sessions.get(turn.session_id)
        if session is None or session.next + 2 > SESSION_LIMIT:
            session = sessions[turn.session_id] = _session(db, turn.session_id, scope_id, turn.time, session)
        author = authors.get(turn.author)
        if author is None:
            author = authors[turn.author] = _author(db, turn.author, scope_id)
        _add_turn(turn, session, author, tally)
    _finish(db, scope_id, sessions.values(), tally)
    return tally.turns


def _known(db: sqlite3.Connection, keys: Sequence[bytes]) -> set[bytes]:
    """Those of *keys* that are stored."""
    found: set[bytes] = set()
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys[start : start + _KEYS_AT_ONCE]
        asked = f"SELECT key FROM messages WHERE key IN ({', '.join('?' * len(some))})"  # noqa: S608 - only marks
        found.update(key for (key,) in db.execute(asked, some))
    return found


def _add_turn(turn: Prepared, session: _Session, author: int, tally: _Tally) -> None:
    key = turn.key
    first, place, time = session.id << PLACE_BITS, session.next, turn.time
    for role, said, terms in turn.parts:
        message = first | place
        place += 1
        speaker = 0 if role == _ASSISTANT else author
        tally.rows.append((message, role, speaker, time, terms, said, key))
        key = None
        tally.terms += terms.count(" ") + 1
        if len(terms) < _SHORT:
            tally.passages.append((message << PASSAGE_BITS, terms))
        else:
            row = message << PASSAGE_BITS
            tally.passages.extend((row + i, part) for i, part in enumerate(text.passages(terms)))
    session.next = place
    if turn.parts:
        tally.turns += 1
        session.first = min(session.first, time)
        session.last = max(session.last, time)
        session.changed = True


def _finish(db: sqlite3.Connection, scope_id: int, sessions: Iterable[_Session], tally: _Tally) -> None:
    mark = scope_term(scope_id)
    db.executemany(_ADD_MESSAGE, tally.rows)
    tally.passages.sort()  # the index takes rising ids many times faster
    db.executemany(_ADD_PASSAGE, [(row, f"{terms} {mark}") for row, terms in tally.passages])
    db.executemany(
        "UPDATE sessions SET next = ?, first = ?, last = ? WHERE id = ?",
        [(s.next, s.first, s.last, s.id) for s in sessions if s.changed],
    )
    if tally.rows:
        count(db, scope_id, tally.turns, len(tally.rows), tally.terms)


def count(db: sqlite3.Connection, scope_id: int, turns: int, messages: int, terms: int) -> None:
    """Add to what is known of a scope; negative where something went."""
    db.execute(
        "UPDATE scopes SET turns = turns + ?, messages = messages + ?, terms = terms + ? WHERE id = ?",
        (turns, messages, terms, scope_id),
    )


def scope_of(db: sqlite3.Connection, scope: str) -> int:
    """The id of *scope*, made if need be."""
    row = db.execute("SELECT id FROM scopes WHERE key = ?", (scope,)).fetchone()
    if row is None:
        row = (db.execute("INSERT INTO scopes (key) VALUES (?)", (scope,)).lastrowid,)
    return int(row[0])


def _session(
    db: sqlite3.Connection, name: str, scope_id: int, time: float, full: _Session | None
) -> _Session:
    if full is not None:
        db.execute("UPDATE sessions SET next = ?, first = ?, last = ? WHERE id = ?",
                   (full.next, full.first, full.last, full.id))  # fmt: skip
    row = db.execute(
        "SELECT id, next, first, last FROM sessions WHERE name = ? AND scope = ? AND target = ''"
        " ORDER BY id DESC LIMIT 1",
        (name, scope_id),
    ).fetchone()
    if row is not None and row[1] + 2 <= SESSION_LIMIT:
        return _Session(*row)
    return _Session(_new_session(db, name, scope_id, "", time), 0, time, time)


def _new_session(db: sqlite3.Connection, name: str, scope_id: int, target: str, time: float) -> int:
    added = db.execute(
        "INSERT INTO sessions (scope, name, target, first, last) VALUES (?, ?, ?, ?, ?)",
        (scope_id, name, target, time, time),
    )
    return int(added.lastrowid or 0)


def _author(db: sqlite3.Connection, name: str, scope_id: int) -> int:
    found = db.execute("SELECT id FROM authors WHERE scope = ? AND name = ?", (scope_id, name)).fetchone()
    if found is None:
        found = (db.execute("INSERT INTO authors (scope, name) VALUES (?, ?)", (scope_id, name)).lastrowid,)
    return int(found[0])


def _digest(scope: str, session_id: str, key: str) -> bytes:
    """What stands for a key in the index; those of one session lie side by side, on few pages."""
    near, begun = _digest_of_session(scope, session_id)
    whole = begun.copy()
    whole.update(key.encode("utf-8", "surrogatepass"))
    return near + whole.digest()


@functools.lru_cache(64)
def _digest_of_session(scope: str, session_id: str) -> tuple[bytes, hashlib.blake2b]:
    begun = hashlib.blake2b(f"{scope}\0{session_id}\0".encode("utf-8", "surrogatepass"), digest_size=12)
    return zlib.crc32(session_id.encode("utf-8", "surrogatepass")).to_bytes(4, "big"), begun


# -- notes ------------------------------------------------------------------------------------------------


def add_note(db: sqlite3.Connection, target: str, content: str, scope: str, time: float) -> int:
    """Add an entry of the built-in memory, unless it is there; how many were added."""
    scope_id = scope_of(db, scope)
    row = _note_session(db, target, scope_id)
    if row is None:
        row = (_new_session(db, "", scope_id, target, time), 0)
    session = _Session(row[0], row[1], time, time, changed=True)
    low = session.id << PLACE_BITS
    same = "SELECT 1 FROM messages WHERE id BETWEEN ? AND ? AND text = ?"
    if db.execute(same, (low, low + SESSION_LIMIT - 1, content)).fetchone():
        return 0
    tally = _Tally()
    _add_turn(
        Prepared("", "", time, None, [(int(Role.NOTE), content, text.terms(content))]), session, 0, tally
    )
    tally.turns = 0
    _finish(db, scope_id, [session], tally)
    return 1


def add_fact(db: sqlite3.Connection, content: str, session: str, person: str, scope: int, time: float) -> int:
    """Add a message that stands alone, so that it has no neighbours; its id."""
    alone = _Session(_new_session(db, session, scope, FACT, time), 0, time, time, changed=True)
    author = _author(db, person, scope) if person else 0
    tally = _Tally()
    part = (int(Role.FACT), content, text.terms(content))
    _add_turn(Prepared(session, person, time, None, [part]), alone, author, tally)
    tally.turns = 0
    _finish(db, scope, [alone], tally)
    return alone.id << PLACE_BITS


def find_notes(db: sqlite3.Connection, target: str, wanted: Sequence[str], scope: str) -> list[int]:
    """Ids of the entries of *target* that equal one of *wanted*, else of the only one that holds one."""
    row = _note_session(db, target, scope_of(db, scope))
    if row is None:
        return []
    low = row[0] << PLACE_BITS
    entries = db.execute(
        "SELECT id, text FROM messages WHERE id BETWEEN ? AND ?", (low, low + SESSION_LIMIT - 1)
    ).fetchall()
    equal = [note for note, content in entries if content in wanted]
    holding = [note for note, content in entries if any(w in content for w in wanted)]
    return equal or (holding if len(holding) == 1 else [])


def _note_session(db: sqlite3.Connection, target: str, scope_id: int) -> tuple[int, int] | None:
    found: tuple[int, int] | None = db.execute(
        "SELECT id, next FROM sessions WHERE name = '' AND scope = ? AND target = ?", (scope_id, target)
    ).fetchone()
    return found


# -- taking out -------------------------------------------------------------------------------------------


def delete(db: sqlite3.Connection, ids: Sequence[int], *, purge: bool = True) -> int:
    """Delete the messages *ids* with their terms, and sessions and authors that are left without any.

    Without *purge* the index keeps traces of the terms until it is merged.
    """
    gone = 0
    for message in ids:
        row = db.execute(
            "SELECT m.role, m.terms, s.scope FROM messages m JOIN sessions s ON s.id = m.id >> ?"
            " WHERE m.id = ?",
            (PLACE_BITS, message),
        ).fetchone()
        if row is None:
            continue
        role, terms, scope_id = row
        mark = scope_term(scope_id)
        parts = [(message << PASSAGE_BITS) + i for i, _ in enumerate(text.passages(terms))]
        db.executemany(
            _DELETE_PASSAGE, [(r, f"{t} {mark}") for r, t in zip(parts, text.passages(terms), strict=True)]
        )
        turns = -1 if role < Role.NOTE and _starts_turn(db, message, role) else 0
        db.execute("DELETE FROM messages WHERE id = ?", (message,))
        count(db, scope_id, turns, -1, -(terms.count(" ") + 1))
        gone += 1
    if gone:
        traces.forget(db, ids)
        for session in {message >> PLACE_BITS for message in ids}:
            _drop_if_empty(db, session)
        if purge:  # what was deleted leaves its segments; both take time, the more the more there is
            db.execute("DELETE FROM authors WHERE id NOT IN (SELECT DISTINCT author FROM messages)")
            db.execute("INSERT INTO passages (passages) VALUES ('optimize')")
    return gone


def delete_everything(db: sqlite3.Connection) -> int:
    """Empty every table; how many messages and former facts went."""
    (messages,) = db.execute("SELECT count(*) FROM messages").fetchone()
    (former,) = db.execute("SELECT count(*) FROM memories WHERE ended IS NOT NULL").fetchone()
    db.execute("INSERT INTO passages (passages) VALUES ('delete-all')")
    for table in ("messages", "memories", "authors", "sessions", "scopes"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - names from the line above
    traces.forget_everything(db)
    return int(messages + former)


def _starts_turn(db: sqlite3.Connection, message: int, role: int) -> bool:
    """True where no message of the same turn is left beside this one."""
    other, other_role = (message + 1, Role.ASSISTANT) if role == Role.USER else (message - 1, Role.USER)
    beside = db.execute("SELECT role, time FROM messages WHERE id = ?", (other,)).fetchone()
    own = db.execute("SELECT time FROM messages WHERE id = ?", (message,)).fetchone()
    return not (beside is not None and beside[0] == other_role and beside[1] == own[0])


def _drop_if_empty(db: sqlite3.Connection, session: int) -> None:
    low = session << PLACE_BITS
    left = db.execute(
        "SELECT 1 FROM messages WHERE id BETWEEN ? AND ? LIMIT 1", (low, low + SESSION_LIMIT - 1)
    )
    if left.fetchone() is None:
        db.execute("DELETE FROM sessions WHERE id = ?", (session,))
        traces.forget_session(db, session)
