"""The store of local memory in one SQLite file: messages, and a full-text index over their terms."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.errors import PermanentError, StoreUnavailable
from hermes.plugins.memory.local import schema
from hermes.plugins.memory.local.connections import BUSY_SECONDS, Connections
from hermes.plugins.memory.local.records import Record, Totals, Turn
from hermes.plugins.memory.local.view import RECORD, SqliteView, record_of, records_of, span

log = logging.getLogger(__name__)

_BATCH = 500


class SqliteStore:
    """See ``records.Store``. The file is made by the first write."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS, vfs: str = "") -> None:
        self.path = path
        self._connections = Connections(path, busy_seconds=busy_seconds, vfs=vfs)

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

    def forget(self, scope: str | None, *, ids: Sequence[int] = (), session_id: str | None = None) -> int:
        """Delete messages from every file; see ``records.Store``."""
        if not self.path.exists():
            return 0
        from hermes.plugins.memory.local import writing

        with self._connections.write() as db:
            if scope is None and not ids and session_id is None:
                gone = writing.delete_everything(db)
            else:
                gone = writing.delete(db, self._selected(db, scope, ids, session_id))
            schema.owe_scrub(db)
        self._scrub()
        return gone

    def _selected(
        self, db: sqlite3.Connection, scope: str | None, ids: Sequence[int], session_id: str | None
    ) -> list[int]:
        if ids:
            return [record.id for record in records_of(db, ids, scope)]
        found = db.execute(
            "SELECT s.id FROM sessions s JOIN scopes c ON c.id = s.scope"
            " WHERE (?1 IS NULL OR c.key = ?1) AND (?2 IS NULL OR (s.name = ?2 AND s.target = ''))",
            (scope, session_id),
        ).fetchall()
        selected: list[int] = []
        for (session,) in found:
            rows = db.execute("SELECT id FROM messages WHERE id BETWEEN ? AND ?", span(session)).fetchall()
            selected.extend(row[0] for row in rows)
        return selected

    def _scrub(self) -> None:
        """Clear deleted text out of the log and of copies."""
        schema.remove_backups(self.path)
        if not self._connections.scrub():
            log.warning("%s: a reader holds the log; deleted text leaves it at the next opening", self.path)

    # -- reading -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def view(self, scope: str) -> Iterator[SqliteView | None]:
        """One scope as it is now; see ``records.Store``."""
        with self._connections.read() as db:
            if db is None:
                yield None
                return
            db.execute("BEGIN")
            try:
                scopes = db.execute(
                    "SELECT id, key, messages, terms FROM scopes WHERE key = ?", (scope,)
                ).fetchall()
                alone = db.execute("SELECT count(*) FROM (SELECT 1 FROM scopes LIMIT 2)").fetchone()[0] == 1
                yield SqliteView(db, *scopes[0], alone=alone) if scopes else None
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

    # -- state -------------------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """What there is, for status; nothing is created."""
        with self._connections.read() as db:
            if db is None:
                return Totals()
            turns, messages, people = db.execute(
                "SELECT coalesce(sum(turns), 0), coalesce(sum(messages), 0), count(*) FROM scopes"
            ).fetchone()
            sessions, last = db.execute(
                "SELECT coalesce(sum(target = ''), 0), coalesce(max(last), 0) FROM sessions"
            ).fetchone()
            spans = db.execute("SELECT id FROM sessions WHERE target != ''").fetchall()
            notes = sum(
                db.execute("SELECT count(*) FROM messages WHERE id BETWEEN ? AND ?", span(s)).fetchone()[0]
                for (s,) in spans
            )
            mode = self._connections.journal_mode
        size = sum(p.stat().st_size for p in self.path.parent.glob(f"{self.path.name}*") if p.is_file())
        return Totals(turns, messages, notes, sessions, people, last, size, mode)

    def close(self) -> None:
        """Let go of the files."""
        self._connections.close()
