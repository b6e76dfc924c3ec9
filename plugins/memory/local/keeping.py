"""What a store in SQLite does besides turns: facts, their upkeep, and what is let go by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.plugins.memory.local import facts, retention, schema
from hermes.plugins.memory.local.connections import Connections
from hermes.plugins.memory.local.records import Fact, Limits, Source

_NO_USES: Mapping[int, int] = {}


class Keeping:
    """The part of ``records.Store`` that is about facts and retention."""

    path: Path
    _connections: Connections

    def remember(
        self, text: str, scope: str, time: float, *, source: Source, expires: float | None, pinned: bool
    ) -> tuple[Fact, bool]:
        """Keep a fact; see ``records.Store``."""
        with self._connections.write() as db:
            return facts.add(db, text, scope, time, source, expires=expires, pinned=pinned)

    def correct(
        self,
        fact: int,
        text: str,
        scopes: Sequence[str] | None,
        time: float,
        *,
        source: Source,
        expires: float | None,
    ) -> Fact:
        """Put *text* in the place of *fact*; see ``records.Store``."""
        with self._connections.write() as db:
            return facts.correct(db, fact, text, scopes, time, source, expires=expires)

    def mark(
        self,
        fact: int,
        scopes: Sequence[str] | None,
        *,
        pinned: bool | None = None,
        expires: float | None = None,
    ) -> Fact:
        """Pin, unpin or date *fact*; see ``records.Store``."""
        with self._connections.write() as db:
            return facts.mark(db, fact, scopes, pinned=pinned, expires=expires)

    def restore(self, fact: Fact) -> tuple[int, bool]:
        """Keep *fact* as it was elsewhere; see ``records.Store``."""
        with self._connections.write() as db:
            return facts.restore(db, fact)

    def facts(
        self,
        scopes: Sequence[str] | None,
        *,
        ids: Sequence[int] = (),
        pinned: bool = False,
        former: bool = False,
        limit: int = 0,
    ) -> list[Fact]:
        """Facts, newest first; see ``records.Store``."""
        with self._connections.read() as db:
            if db is None:
                return []
            return facts.listed(db, scopes, ids=ids, pinned=pinned, former=former, limit=limit)

    def expired(self, now: float) -> set[int]:
        """Facts that are past their time; see ``records.Store``."""
        with self._connections.read() as db:
            return set() if db is None else set(facts.expired(db, now))

    def upkeep(self, now: float, uses: Mapping[int, int], limits: Limits, *, most: int) -> int:
        """Uses, expiry, retention, in one transaction if there is anything to do; see ``records.Store``."""
        with self._connections.read() as db:
            if db is None or not (uses or _something_to_do(db, now, limits)):
                return 0
        with self._connections.write() as db:
            facts.used(db, uses, now)
            if over := facts.expired(db, now):
                facts.end(db, over, now)
            gone = retention.let_go(db, ids) if (ids := retention.beyond(db, limits, now, most)) else 0
            retention.merge(db)
            if over or gone:
                schema.owe_scrub(db)
            return gone

    def optimize(self, now: float, limits: Limits) -> int:
        """Do at once all that is otherwise done bit by bit, and give space back; messages that went."""
        if not self.path.exists():
            return 0
        gone = 0
        while went := self.upkeep(now, _NO_USES, limits, most=2_000):
            gone += went
        with self._connections.write() as db:
            db.execute("INSERT INTO passages (passages) VALUES ('optimize')")
            retention.purged(db)
            schema.owe_scrub(db)
        self._connections.compact()
        self._connections.scrub()
        return gone


def _something_to_do(db: sqlite3.Connection, now: float, limits: Limits) -> bool:
    if facts.expired(db, now) or retention.owed(db):
        return True
    return bool(limits) and bool(retention.beyond(db, limits, now, 1))
