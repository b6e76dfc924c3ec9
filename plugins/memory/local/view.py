"""What a search reads of the scopes it may see, inside one read transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes.plugins.memory.local.records import Candidate, Postings, Record, Role, Size, Vectors
from hermes.plugins.memory.local.schema import PASSAGE_BITS, PLACE_BITS, SESSION_LIMIT, scope_term

if TYPE_CHECKING:
    from hermes.plugins.memory.local.embedding.scan import Cache

_PLACE_MASK = SESSION_LIMIT - 1
RECORD = (
    "SELECT m.id, m.text, m.role, coalesce(a.name, ''), m.time, s.name, c.key, s.target"
    " FROM messages m JOIN sessions s ON s.id = m.id >> 20 JOIN scopes c ON c.id = s.scope"
    " LEFT JOIN authors a ON a.id = m.author"
)


class SqliteView:
    """See ``records.View``."""

    def __init__(
        self,
        db: sqlite3.Connection,
        scopes: Sequence[tuple[int, str, int, int]],
        *,
        alone: bool,
        cache: Callable[[], Cache] | None = None,
    ) -> None:
        self._db = db
        self._cache = cache
        self._numbers = [scope_id for scope_id, *_ in scopes]
        self._ids = json.dumps([scope_id for scope_id, *_ in scopes])
        self._scopes = [key for _, key, *_ in scopes]
        marks = " OR ".join(f'"{scope_term(scope_id)}"' for scope_id, *_ in scopes)
        self._also = "" if alone else f" AND ({marks})"
        self._names = dict(
            db.execute(
                "SELECT id, name FROM authors WHERE scope IN (SELECT value FROM json_each(?))", (self._ids,)
            ).fetchall()
        )
        self.size = Size(
            sum(messages for _, _, messages, _ in scopes),
            sum(terms for *_, terms in scopes),
            tuple(dict.fromkeys(self._names.values())),
        )

    def postings(self, term: str, limit: int, *, prefix: bool = False) -> Postings:
        """The messages that hold *term*."""
        query = f'"{term}"{" *" if prefix else ""}{self._also}'
        rows = self._db.execute(
            "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rowid DESC LIMIT ?", (query, limit)
        ).fetchall()
        ids = list(dict.fromkeys([row >> PASSAGE_BITS for (row,) in rows]))
        if len(rows) < limit:
            return Postings(ids, len(ids))
        first, last = self._ends()
        return Postings(ids, round(len(ids) * (last - first + 1) / (last - ids[-1] + 1)))

    def _ends(self) -> tuple[int, int]:
        """The lowest and the highest message id, one by one: asked for both, SQLite scans the table."""
        (first,) = self._db.execute("SELECT min(id) FROM messages").fetchone()
        (last,) = self._db.execute("SELECT max(id) FROM messages").fetchone()
        return first, last

    def candidates(self, ids: Sequence[int], around: int = 0) -> list[Candidate]:
        """The messages *ids* with their neighbours."""
        wanted = set(ids)
        for distance in range(1, around + 1):
            wanted.update([i + distance for i in ids], [i - distance for i in ids])
        rows = self._db.execute(
            "SELECT id, role, author, time, terms FROM messages WHERE id IN (SELECT value FROM json_each(?))",
            (str(list(wanted)),),
        ).fetchall()
        own, names = self._own({row[0] >> PLACE_BITS for row in rows}), self._names
        return [
            Candidate(i, i >> PLACE_BITS, i & _PLACE_MASK, role, names.get(author, ""), time, terms)
            for i, role, author, time, terms in rows
            if i >> PLACE_BITS in own
        ]

    def _own(self, sessions: set[int]) -> set[int]:
        """Those of *sessions* that are in the scopes."""
        if not self._also:
            return sessions
        rows = self._db.execute(
            "SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
            " AND scope IN (SELECT value FROM json_each(?))",
            (str(list(sessions)), self._ids),
        ).fetchall()
        return {session for (session,) in rows}

    def sessions_named(self, names: Sequence[str]) -> set[int]:
        """The numbers of the sessions called *names*."""
        rows = self._db.execute(
            "SELECT id FROM sessions WHERE target = '' AND scope IN (SELECT value FROM json_each(?))"
            " AND name IN (SELECT value FROM json_each(?))",
            (self._ids, json.dumps(list(names))),
        ).fetchall()
        return {session for (session,) in rows}

    def session_of(self, message: int) -> int:
        """The session is part of the id."""
        return message >> PLACE_BITS

    def between(self, start: float, end: float, limit: int) -> list[int]:
        """Ids of messages said from *start* up to *end*, newest sessions first."""
        found: list[int] = []
        sessions = self._db.execute(
            "SELECT id FROM sessions WHERE scope IN (SELECT value FROM json_each(?)) AND last >= ?"
            " AND first < ? AND target = '' ORDER BY id DESC LIMIT ?",
            (self._ids, start, end, limit),
        ).fetchall()
        for (session,) in sessions:
            rows = self._db.execute(
                "SELECT id FROM messages WHERE id BETWEEN ? AND ? AND time >= ? AND time < ?"
                " ORDER BY id LIMIT ?",
                (*span(session), start, end, limit - len(found)),
            ).fetchall()
            found.extend(row[0] for row in rows)
            if len(found) >= limit:
                break
        return found

    def records(self, ids: Sequence[int]) -> list[Record]:
        """The messages *ids*, in that order."""
        return records_of(self._db, ids, self._scopes)

    def vectors(self, model: str) -> Vectors | None:
        """What there is of the vectors of *model*."""
        known = self._db.execute("SELECT 1 FROM models WHERE name = ?", (model,)).fetchone()
        if known is None or self._cache is None:
            return None
        from hermes.plugins.memory.local.embedding import scan

        return scan.find(self._db, model, self._numbers, self._cache())


def records_of(db: sqlite3.Connection, ids: Sequence[int], scopes: Sequence[str] | None) -> list[Record]:
    """The messages *ids* in that order, without those outside *scopes*; None is every scope."""
    rows = db.execute(
        RECORD + " WHERE m.id IN (SELECT value FROM json_each(?1))"  # noqa: S608 - constants
        " AND (?2 IS NULL OR c.key IN (SELECT value FROM json_each(?2)))",
        (str(list(ids)), None if scopes is None else json.dumps(list(scopes))),
    ).fetchall()
    found = {row[0]: record_of(row) for row in rows}
    return [found[i] for i in ids if i in found]


def record_of(row: tuple[int, str, int, str, float, str, str, str]) -> Record:
    """A row of ``RECORD``."""
    message, text, role, author, time, session, scope, target = row
    return Record(message, text, Role(role), author, time, session, scope, target)


def span(session: int) -> tuple[int, int]:
    """The lowest and the highest message id of *session*."""
    low = session << PLACE_BITS
    return low, low + SESSION_LIMIT - 1
