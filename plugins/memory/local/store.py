"""The store of local memory in one SQLite file: messages, and a full-text index over their terms."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.errors import PermanentError, StoreUnavailable
from hermes.plugins.memory.local import schema
from hermes.plugins.memory.local.connections import BUSY_SECONDS, Connections
from hermes.plugins.memory.local.keeping import Keeping
from hermes.plugins.memory.local.records import VECTOR_MEMORY, Record, Totals, Turn
from hermes.plugins.memory.local.view import RECORD, SqliteView, record_of, records_of, span

if TYPE_CHECKING:
    from hermes.plugins.memory.local.embedding.scan import Cache
    from hermes.plugins.memory.local.embedding.vectors import SqliteVectors

log = logging.getLogger(__name__)

_BATCH = 500


class SqliteStore(Keeping):
    """See ``records.Store``. The file is made by the first write."""

    def __init__(
        self,
        path: Path,
        *,
        busy_seconds: float = BUSY_SECONDS,
        vfs: str = "",
        vector_memory: int = VECTOR_MEMORY,
    ) -> None:
        self.path = path
        self._connections = Connections(path, busy_seconds=busy_seconds, vfs=vfs)
        self._vector_memory = vector_memory
        self._cache: Cache | None = None

    # -- writing -----------------------------------------------------------------------------------------

    def add(self, turns: Sequence[Turn], scope: str) -> int:
        """Store *turns* in one transaction; see ``records.Store``."""
        from hermes.plugins.memory.local import writing

        prepared = [writing.prepare(turn, scope) for turn in turns]
        try:
            with self._connections.write() as db:
                return writing.add_turns(db, prepared, scope)
        except StoreUnavailable as exc:
            if isinstance(exc.__cause__, sqlite3.DataError):
                raise PermanentError(f"a turn is too long to be stored: {exc.reason}") from exc
            raise

    def note(self, action: str, target: str, content: str, previous: str, scope: str, time: float) -> int:
        """Mirror a change of the built-in memory; see ``records.Store``."""
        from hermes.plugins.memory.local import writing

        deleted = added = 0
        with self._connections.write() as db:
            if action in ("replace", "remove"):
                wanted = [text for text in (previous, content if action == "remove" else "") if text]
                deleted = writing.delete(db, writing.find_notes(db, target, wanted, scope))
            if action in ("add", "replace") and content:
                added = writing.add_note(db, target, content, scope, time)
            if deleted:
                schema.owe_scrub(db)
        if deleted:
            self._scrub()
        return deleted + added

    def forget(
        self,
        scope: str | None,
        *,
        ids: Sequence[int] = (),
        session_id: str | None = None,
        before: float | None = None,
    ) -> int:
        """Delete messages and facts from every file; see ``records.Store``."""
        if not self.path.exists():
            return 0
        from hermes.plugins.memory.local import facts, retention, writing

        with self._connections.write() as db:
            if scope is None and not ids and session_id is None and before is None:
                gone = writing.delete_everything(db)
            else:
                messages, remembered = self._selected(db, scope, ids, session_id, before)
                gone = writing.delete(db, messages) + facts.drop(db, remembered)
            retention.purged(db)
            schema.owe_scrub(db)
        self._scrub()
        return gone

    def _selected(
        self,
        db: sqlite3.Connection,
        scope: str | None,
        ids: Sequence[int],
        session_id: str | None,
        before: float | None,
    ) -> tuple[list[int], list[int]]:
        """Ids of the messages to delete, and of the facts."""
        if ids:
            own = [record.id for record in records_of(db, ids, None if scope is None else [scope])]
            remembered = db.execute(
                "SELECT f.id FROM memories f JOIN scopes c ON c.id = f.scope WHERE (?1 IS NULL OR c.key = ?1)"
                " AND f.id IN (SELECT value FROM json_each(?2))",
                (scope, json.dumps(list(ids))),
            ).fetchall()
            return own, [fact for (fact,) in remembered]
        named = session_id is not None or before is not None  # else notes too, which stand in no session
        remembered = db.execute(
            "SELECT f.id FROM memories f JOIN scopes c ON c.id = f.scope WHERE (?1 IS NULL OR c.key = ?1)"
            " AND (?2 IS NULL OR f.session = ?2) AND (?3 IS NULL OR f.created < ?3)",
            (scope, session_id, before),
        ).fetchall()
        found = db.execute(
            "SELECT s.id FROM sessions s JOIN scopes c ON c.id = s.scope WHERE (?1 IS NULL OR c.key = ?1)"
            " AND (?2 IS NULL OR s.name = ?2) AND (?3 IS NULL OR s.first < ?3)"
            " AND (NOT ?4 OR s.target IN ('', 'fact'))",
            (scope, session_id, before, named),
        ).fetchall()
        selected: list[int] = []
        for (session,) in found:
            rows = db.execute(
                "SELECT id FROM messages WHERE id BETWEEN ? AND ? AND (?3 IS NULL OR time < ?3)",
                (*span(session), before),
            ).fetchall()
            selected.extend(row[0] for row in rows)
        return selected, [fact for (fact,) in remembered]

    def _scrub(self) -> None:
        """Clear deleted text out of the log and of copies."""
        schema.remove_backups(self.path)
        if not self._connections.scrub():
            log.warning("%s: a reader holds the log; deleted text leaves it at the next opening", self.path)

    # -- reading -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def view(self, *scopes: str) -> Iterator[SqliteView | None]:
        """Those scopes as they are now; see ``records.Store``."""
        with self._connections.read() as db:
            if db is None:
                yield None
                return
            db.execute("BEGIN")
            try:
                found = db.execute(
                    "SELECT id, key, messages, terms FROM scopes WHERE key IN (SELECT value FROM json_each(?))",
                    (json.dumps(scopes),),
                ).fetchall()
                (others,) = db.execute(
                    "SELECT count(*) FROM (SELECT 1 FROM scopes LIMIT ?)", (len(found) + 1,)
                ).fetchone()
                alone = others == len(found)
                yield SqliteView(db, found, alone=alone, cache=self._scan_cache) if found else None
            finally:
                db.execute("ROLLBACK")

    def listing(self, scope: str | None, *, session_id: str = "", limit: int = 0) -> Iterator[Record]:
        """Messages newest first if *limit* is given, else all in order; no lock is held in between."""
        if limit:
            yield from self._newest(scope, session_id, limit)
            return
        after = -1
        while True:
            with self._connections.read() as db:
                rows = [] if db is None else db.execute(
                    f"{RECORD} WHERE m.id > ?1 AND (?2 IS NULL OR c.key = ?2) AND (?3 = '' OR s.name = ?3)"
                    " ORDER BY m.id LIMIT ?4",
                    (after, scope, session_id, _BATCH),
                ).fetchall()  # fmt: skip
            if not rows:
                return
            yield from map(record_of, rows)
            after = rows[-1][0]

    def records(self, ids: Sequence[int]) -> list[Record]:
        """The messages *ids*; see ``records.Store``."""
        with self._connections.read() as db:
            return [] if db is None else records_of(db, ids, None)

    def _newest(self, scope: str | None, session_id: str, limit: int) -> list[Record]:
        found: list[Record] = []
        with self._connections.read() as db:
            if db is None:
                return []
            sessions = db.execute(
                "SELECT s.id FROM sessions s JOIN scopes c ON c.id = s.scope WHERE (?1 IS NULL OR c.key = ?1)"
                " AND (?2 = '' OR s.name = ?2) ORDER BY s.last DESC, s.id DESC LIMIT ?3",
                (scope, session_id, limit),
            ).fetchall()
            for (session,) in sessions:
                rows = db.execute(
                    f"{RECORD} WHERE m.id BETWEEN ? AND ? ORDER BY m.id DESC LIMIT ?", (*span(session), limit)
                ).fetchall()
                found.extend(map(record_of, rows))
        found.sort(key=lambda record: record.time, reverse=True)
        return found[:limit]

    def vectors(self) -> SqliteVectors:
        """The vectors of what is stored; needs numpy."""
        from hermes.plugins.memory.local.embedding.vectors import SqliteVectors

        return SqliteVectors(self._connections)

    def _scan_cache(self) -> Cache:
        if self._cache is None:
            from hermes.plugins.memory.local.embedding.scan import Cache

            self._cache = Cache(self._vector_memory)
        return self._cache

    # -- state -------------------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """What there is, for status; nothing is created."""
        with self._connections.read() as db:
            if db is None:
                return Totals()
            turns, messages, people = db.execute(
                "SELECT coalesce(sum(turns), 0), coalesce(sum(messages), 0), count(*) FROM scopes"
            ).fetchone()
            facts, pinned, former = db.execute(
                "SELECT coalesce(sum(ended IS NULL), 0), coalesce(sum(pinned), 0),"
                " coalesce(sum(ended IS NOT NULL), 0) FROM memories"
            ).fetchone()
            sessions, last = db.execute(
                "SELECT coalesce(sum(target = ''), 0), coalesce(max(last), 0) FROM sessions"
            ).fetchone()
            spans = db.execute("SELECT id FROM sessions WHERE target NOT IN ('', 'fact')").fetchall()
            notes = sum(
                db.execute("SELECT count(*) FROM messages WHERE id BETWEEN ? AND ?", span(s)).fetchone()[0]
                for (s,) in spans
            )
            (oldest,) = db.execute(
                "SELECT coalesce(min(first), 0) FROM sessions WHERE target = ''"
            ).fetchone()
            mode, owes = self._connections.journal_mode, schema.owes_scrub(db)
        size = sum(p.stat().st_size for p in self.path.parent.glob(f"{self.path.name}*") if p.is_file())
        return Totals(
            turns, messages, notes, sessions, people, last, size, mode, facts, pinned, former, owes, oldest
        )

    def close(self) -> None:
        """Let go of the files."""
        self._connections.close()
