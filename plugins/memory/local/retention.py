"""What is let go by itself: the oldest turns, a bounded number at once. Facts and notes are not counted.

Everything here runs inside the caller's transaction.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from hermes.plugins.memory.local import writing
from hermes.plugins.memory.local.records import Limits, Role
from hermes.plugins.memory.local.schema import PLACE_BITS, SESSION_LIMIT

MERGED_PAGES = 500
"""Pages of the index that are merged at once, so that terms of what was let go leave it bit by bit."""
_OWED = "merge"


class _Message(NamedTuple):
    time: float
    id: int
    role: int
    bytes: int


def beyond(db: sqlite3.Connection, limits: Limits, now: float, most: int) -> list[int]:
    """Ids of the oldest messages that *limits* do not allow, whole turns, about *most* of them."""
    too_old = now - limits.max_age if limits.max_age else float("-inf")
    (turns,) = db.execute("SELECT coalesce(sum(turns), 0) FROM scopes").fetchone()
    too_many = turns - limits.max_turns if limits.max_turns else 0
    too_much = size(db) - owed(db) - limits.max_bytes if limits.max_bytes else 0
    if too_many <= 0 and too_much <= 0 and not _any_before(db, too_old):
        return []
    gone: list[int] = []
    for turn in _oldest_turns(db, most):
        if not (turn[0].time < too_old or too_many > 0 or too_much > 0) or len(gone) >= most:
            break
        gone.extend(message.id for message in turn)
        too_many -= 1
        too_much -= sum(message.bytes for message in turn)
    return gone


def let_go(db: sqlite3.Connection, ids: list[int]) -> int:
    """Delete the messages *ids*; what of them stays in the index is owed. How many went."""
    weight = sum(_weight(db, message) for message in ids)
    gone = writing.delete(db, ids, purge=False)
    db.executemany(
        "UPDATE sessions SET first = coalesce((SELECT time FROM messages WHERE id BETWEEN ?1 AND ?2"
        " ORDER BY id LIMIT 1), first) WHERE id = ?3",
        [(s << PLACE_BITS, (s << PLACE_BITS) + SESSION_LIMIT - 1, s) for s in {i >> PLACE_BITS for i in ids}],
    )
    _owe(db, owed(db) + weight)
    return gone


def merge(db: sqlite3.Connection) -> None:
    """Do a part of what is owed to the index."""
    if not owed(db):
        return
    before = db.total_changes
    db.execute("INSERT INTO passages (passages, rank) VALUES ('merge', ?)", (MERGED_PAGES,))
    if db.total_changes - before < 2:  # nothing is left to be merged by steps: as FTS5 documents it
        db.execute("INSERT INTO passages (passages, rank) VALUES ('merge', ?)", (-MERGED_PAGES,))
        if db.total_changes - before < 4:
            _owe(db, 0)


def purged(db: sqlite3.Connection) -> None:
    """Note that the index was merged as a whole: nothing is owed to it."""
    _owe(db, 0)


def owed(db: sqlite3.Connection) -> int:
    """Bytes, roughly, that the index still holds of what was let go."""
    row = db.execute("SELECT value FROM facts WHERE name = ?", (_OWED,)).fetchone()
    return int(row[0]) if row else 0


def size(db: sqlite3.Connection) -> int:
    """Bytes of the file that are in use."""
    pages, free, page = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * page)


def _owe(db: sqlite3.Connection, amount: int) -> None:
    db.execute("DELETE FROM facts WHERE name = ?", (_OWED,))
    if amount:
        db.execute("INSERT INTO facts VALUES (?, ?)", (_OWED, str(amount)))


def _any_before(db: sqlite3.Connection, time: float) -> bool:
    found = db.execute("SELECT 1 FROM sessions WHERE target = '' AND first < ? LIMIT 1", (time,))
    return found.fetchone() is not None


def _oldest_turns(db: sqlite3.Connection, most: int) -> Iterator[list[_Message]]:
    """Turns in order of time, whatever sessions they are in."""
    turn: list[_Message] = []
    for message in _oldest_messages(db, most):
        if turn and not (
            message.role == Role.ASSISTANT and turn[-1].role == Role.USER and message.id == turn[-1].id + 1
        ):
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _oldest_messages(db: sqlite3.Connection, most: int) -> Iterator[_Message]:
    found = db.execute(
        "SELECT first, id FROM sessions WHERE target = '' ORDER BY first, id LIMIT ?", (most + 1,)
    ).fetchall()
    waiting: list[tuple[float, int, Iterator[_Message], _Message | None]] = [
        (first, session, _messages(db, session), None) for first, session in found
    ]  # sorted, so a heap; a session is read when its first message is the oldest
    while waiting:
        _, session, rest, message = heapq.heappop(waiting)
        if message is not None:
            yield message
        if (following := next(rest, None)) is not None:
            heapq.heappush(waiting, (following.time, session, rest, following))


def _messages(db: sqlite3.Connection, session: int) -> Iterator[_Message]:
    after, last = (session << PLACE_BITS) - 1, (session << PLACE_BITS) + SESSION_LIMIT - 1
    while rows := db.execute(
        "SELECT time, id, role, length(CAST(text AS BLOB)) + 2 * length(CAST(terms AS BLOB)) FROM messages"
        " WHERE id > ? AND id <= ? ORDER BY id LIMIT 20",
        (after, last),
    ).fetchall():
        yield from map(_Message._make, rows)
        after = rows[-1][1]


def _weight(db: sqlite3.Connection, message: int) -> int:
    row = db.execute("SELECT length(CAST(terms AS BLOB)) FROM messages WHERE id = ?", (message,)).fetchone()
    return int(row[0]) if row else 0
