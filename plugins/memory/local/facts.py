"""Facts in the tables: what was remembered on purpose, corrected, pinned, or has ended.

Everything here runs inside the caller's transaction.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hermes.errors import EntryNotFound
from hermes.plugins.memory.local import text, writing
from hermes.plugins.memory.local.records import Fact, Source

_FACT = (
    "SELECT f.id, f.text, c.key, f.created, f.session, f.turn, f.message, f.tool, f.person, f.used, f.uses,"
    " f.pinned, f.expires, f.ended, f.successor FROM memories f JOIN scopes c ON c.id = f.scope"
)
_OLDER = (
    "WITH RECURSIVE chain (id) AS (SELECT value FROM json_each(?) UNION"
    " SELECT f.id FROM memories f JOIN chain ON f.successor = chain.id)"
)


def add(
    db: sqlite3.Connection,
    content: str,
    scope: str,
    time: float,
    source: Source,
    *,
    expires: float | None = None,
    pinned: bool = False,
) -> tuple[Fact, bool]:
    """Add a fact, or return the one that says the same. The flag: it is new."""
    content, scope_id = text.storable(content), writing.scope_of(db, scope)
    if known := _same(db, content, scope_id):
        return (mark(db, known, None, pinned=True) if pinned else one(db, known, None)), False
    session, person = text.storable(source.session_id), text.storable(source.person)
    number = writing.add_fact(db, content, session, person, scope_id, time)
    fact = Fact(number, content, scope, time, source, pinned=pinned, expires=expires)
    _insert(db, fact, scope_id)
    return fact, True


def restore(db: sqlite3.Connection, fact: Fact) -> tuple[int, bool]:
    """Add *fact* as it was elsewhere, under an id of this file; that, and whether it is new here."""
    scope_id = writing.scope_of(db, fact.scope)
    known = db.execute(
        "SELECT id FROM memories WHERE scope = ? AND said = ? AND (ended IS NULL AND ? IS NULL OR created = ?)",
        (scope_id, _said(fact.text), fact.ended, fact.created),
    ).fetchone()
    if known:
        return int(known[0]), False
    source = fact.source
    number = writing.add_fact(db, fact.text, source.session_id, source.person, scope_id, fact.created)
    _insert(db, replace(fact, id=number), scope_id)
    if fact.ended is not None:
        writing.delete(db, [number], purge=False)
    return number, True


def _insert(db: sqlite3.Connection, fact: Fact, scope_id: int) -> None:
    source = fact.source
    db.execute(
        "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (fact.id, scope_id, fact.text, _said(fact.text), fact.created, text.storable(source.session_id),
         source.turn, source.message, source.tool, text.storable(source.person), fact.used, fact.uses,
         fact.pinned, fact.expires, fact.ended, fact.successor),
    )  # fmt: skip


def correct(
    db: sqlite3.Connection,
    fact: int,
    content: str,
    scopes: Sequence[str] | None,
    time: float,
    source: Source,
    *,
    expires: float | None = None,
) -> Fact:
    """Let *content* take the place of *fact*. Raises EntryNotFound."""
    old = holding(db, fact, scopes)
    if _said(text.storable(content)) == _said(old.text):
        return old
    new, _ = add(db, content, old.scope, time, source, expires=expires, pinned=old.pinned)
    end(db, [fact], time, successor=new.id)
    return new


def mark(
    db: sqlite3.Connection,
    fact: int,
    scopes: Sequence[str] | None,
    *,
    pinned: bool | None = None,
    expires: float | None = None,
) -> Fact:
    """Pin or unpin *fact*, or set when it expires. Raises EntryNotFound."""
    holding(db, fact, scopes)
    if pinned is not None:
        db.execute("UPDATE memories SET pinned = ? WHERE id = ?", (pinned, fact))
    if expires is not None:
        db.execute("UPDATE memories SET expires = ? WHERE id = ?", (expires or None, fact))
    return one(db, fact, scopes)


def end(db: sqlite3.Connection, ids: Sequence[int], time: float, *, successor: int = 0) -> None:
    """Take the facts *ids* out of what is searched; their texts are kept in the history."""
    writing.delete(db, ids, purge=False)
    db.executemany(
        "UPDATE memories SET ended = ?, successor = ?, pinned = 0 WHERE id = ?",
        [(time, successor, fact) for fact in ids],
    )


def drop(db: sqlite3.Connection, ids: Iterable[int]) -> int:
    """Delete the facts *ids* and all that they corrected from the table; how many of those had ended."""
    older = f"{_OLDER} SELECT id FROM chain"  # noqa: S608 - a constant
    chain = db.execute(older, (json.dumps(list(ids)),)).fetchall()
    gone = 0
    for (fact,) in chain:
        row = db.execute("DELETE FROM memories WHERE id = ? RETURNING ended", (fact,)).fetchone()
        gone += row is not None and row[0] is not None
    return gone


def used(db: sqlite3.Connection, uses: Mapping[int, int], time: float) -> None:
    """Count that facts were given to a model."""
    db.executemany(
        "UPDATE memories SET uses = uses + ?, used = max(used, ?) WHERE id = ?",
        [(count, time, fact) for fact, count in uses.items()],
    )


def expired(db: sqlite3.Connection, now: float) -> list[int]:
    """Facts whose time is up; pinned ones have no end."""
    rows = db.execute(
        "SELECT id FROM memories WHERE expires <= ? AND expires IS NOT NULL AND ended IS NULL AND NOT pinned",
        (now,),
    )
    return [fact for (fact,) in rows.fetchall()]


def listed(
    db: sqlite3.Connection,
    scopes: Sequence[str] | None,
    *,
    ids: Sequence[int] = (),
    pinned: bool = False,
    former: bool = False,
    limit: int = 0,
) -> list[Fact]:
    """Facts of *scopes* (None: of all), newest first; *ids* with all that they corrected."""
    conditions = [] if former else ["f.ended IS NULL"]
    given: list[object] = []
    if scopes is not None:
        conditions.append("c.key IN (SELECT value FROM json_each(?))")
        given.append(json.dumps(list(scopes)))
    if pinned:
        conditions.append("f.pinned")
    if ids:
        conditions.append("f.id IN (SELECT id FROM chain)")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    chain = f"{_OLDER} " if ids else ""
    rows = db.execute(
        f"{chain}{_FACT}{where} ORDER BY f.created DESC, f.id DESC LIMIT ?",
        ([json.dumps(list(ids))] if ids else []) + [*given, limit or -1],
    )
    return [_fact_of(row) for row in rows.fetchall()]


def one(db: sqlite3.Connection, fact: int, scopes: Sequence[str] | None) -> Fact:
    """The fact with that id, ended or not. Raises EntryNotFound."""
    row = db.execute(f"{_FACT} WHERE f.id = ?", (fact,)).fetchone()
    if row is None or (scopes is not None and row[2] not in scopes):
        raise EntryNotFound(f"there is no fact {fact}", next_step="search or list for its id")
    return _fact_of(row)


def holding(db: sqlite3.Connection, fact: int, scopes: Sequence[str] | None) -> Fact:
    """The fact with that id, which holds. Raises EntryNotFound, with what holds in its place if it ended."""
    found = one(db, fact, scopes)
    if found.ended is None:
        return found
    latest = found
    while latest.successor:
        latest = one(db, latest.successor, None)
    if latest.ended is not None:
        raise EntryNotFound(f"fact {fact} has expired", next_step="remember it anew if it is true again")
    raise EntryNotFound(
        f"fact {fact} was corrected meanwhile; {latest.id} holds now: {latest.text}",
        current=latest.text,
        next_step=f"look whether it still has to be changed, then change {latest.id}",
    )


def _same(db: sqlite3.Connection, content: str, scope_id: int) -> int:
    row = db.execute(
        "SELECT id FROM memories WHERE scope = ? AND said = ? AND ended IS NULL", (scope_id, _said(content))
    ).fetchone()
    return int(row[0]) if row else 0


def _said(content: str) -> bytes:
    """The same for texts that differ in nothing but case, endings, space and punctuation."""
    return hashlib.blake2b((text.terms(content) or content.strip()).encode(), digest_size=12).digest()


def _fact_of(row: tuple[object, ...]) -> Fact:
    fact, said, scope, created, session, turn, message, tool, person, *rest = row
    used_at, uses, pinned, expires, ended, successor = rest
    return Fact(
        fact, said, scope, created, Source(session, turn, message, tool, person),  # type: ignore[arg-type]
        used_at, uses, bool(pinned), expires, ended, successor,  # type: ignore[arg-type]
    )  # fmt: skip
