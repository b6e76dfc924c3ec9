"""Putting turns and notes into the tables and taking them out, inside the caller's transaction."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hermes.plugins.memory.local import text
from hermes.plugins.memory.local.records import Role, Turn
from hermes.plugins.memory.local.schema import PASSAGE_BITS, PLACE_BITS, SESSION_LIMIT, scope_term

_ADD_MESSAGE = (
    "INSERT INTO messages (id, role, author, time, terms, text, key) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (key) WHERE key IS NOT NULL DO NOTHING"
)
_ADD_PASSAGE = "INSERT INTO passages (rowid, terms) VALUES (?, ?)"
_DELETE_PASSAGE = "INSERT INTO passages (passages, rowid, terms) VALUES ('delete', ?, ?)"


@dataclass(slots=True)
class Prepared:
    """A turn as it goes into the tables; made before the write lock is taken."""

    session_id: str
    author: str
    time: float
    key: bytes | None
    parts: list[tuple[Role, str, str]]


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
    messages: int = 0
    terms: int = 0
    passages: list[tuple[int, str]] = field(default_factory=list)


def prepare(turn: Turn, scope: str) -> Prepared:
    """*turn* with its search terms; an empty half is left out."""
    parts = [
        (role, kept, text.terms(kept))
        for role, said in ((Role.USER, turn.user), (Role.ASSISTANT, turn.assistant))
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
    for turn in turns:
        session = sessions.get(turn.session_id)
        if session is None or session.next + 2 > SESSION_LIMIT:
            session = sessions[turn.session_id] = _session(db, turn.session_id, scope_id, turn.time, session)
        author = authors.get(turn.author)
        if author is None:
            author = authors[turn.author] = _author(db, turn.author, scope_id)
        _add_turn(db, turn, session, author, tally)
    _finish(db, scope_id, sessions.values(), tally)
    return tally.turns


def _add_turn(db: sqlite3.Connection, turn: Prepared, session: _Session, author: int, tally: _Tally) -> None:
    key = turn.key
    for role, said, terms in turn.parts:
        message = session.id << PLACE_BITS | session.next
        speaker = author if role is not Role.ASSISTANT else 0
        added = db.execute(_ADD_MESSAGE, (message, int(role), speaker, turn.time, terms, said, key)).rowcount
        if key is not None and not added:
            return
        key = None
        session.next += 1
        tally.messages += 1
        tally.terms += terms.count(" ") + 1
        if len(terms) < text.PASSAGE_WORDS * 6:
            tally.passages.append((message << PASSAGE_BITS, terms))
        else:
            first = message << PASSAGE_BITS
            tally.passages.extend((first + i, part) for i, part in enumerate(text.passages(terms)))
    if turn.parts:
        tally.turns += 1
        session.first = min(session.first, turn.time)
        session.last = max(session.last, turn.time)
        session.changed = True


def _finish(db: sqlite3.Connection, scope_id: int, sessions: Iterable[_Session], tally: _Tally) -> None:
    mark = scope_term(scope_id)
    tally.passages.sort()  # the index takes rising ids many times faster
    db.executemany(_ADD_PASSAGE, [(row, f"{terms} {mark}") for row, terms in tally.passages])
    db.executemany(
        "UPDATE sessions SET next = ?, first = ?, last = ? WHERE id = ?",
        [(s.next, s.first, s.last, s.id) for s in sessions if s.changed],
    )
    if tally.messages:
        count(db, scope_id, tally.turns, tally.messages, tally.terms)


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
    whole = f"{scope}\0{session_id}\0{key}".encode("utf-8", "surrogatepass")
    near = zlib.crc32(session_id.encode("utf-8", "surrogatepass")).to_bytes(4, "big")
    return near + hashlib.blake2b(whole, digest_size=12).digest()


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
        db, Prepared("", "", time, None, [(Role.NOTE, content, text.terms(content))]), session, 0, tally
    )
    tally.turns = 0
    _finish(db, scope_id, [session], tally)
    return 1


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


def delete(db: sqlite3.Connection, ids: Sequence[int]) -> int:
    """Delete the messages *ids* with their terms, and sessions and authors that are left without any."""
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
        turns = -1 if role != Role.NOTE and _starts_turn(db, message, role) else 0
        db.execute("DELETE FROM messages WHERE id = ?", (message,))
        count(db, scope_id, turns, -1, -(terms.count(" ") + 1))
        gone += 1
    if gone:
        for session in {message >> PLACE_BITS for message in ids}:
            _drop_if_empty(db, session)
        db.execute("DELETE FROM authors WHERE id NOT IN (SELECT DISTINCT author FROM messages)")
        db.execute(
            "INSERT INTO passages (passages) VALUES ('optimize')"
        )  # what was deleted leaves its segments
    return gone


def delete_everything(db: sqlite3.Connection) -> int:
    """Empty every table; how many messages went."""
    (messages,) = db.execute("SELECT count(*) FROM messages").fetchone()
    db.execute("INSERT INTO passages (passages) VALUES ('delete-all')")
    for table in ("messages", "authors", "sessions", "scopes"):
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - names from the line above
    return int(messages)


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
