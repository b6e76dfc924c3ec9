"""The transcripts of one profile in one SQLite file: written as a turn goes on, read by id, time and text."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes.database import Database
from hermes.errors import NotFound, StoreUnavailable, UsageError
from hermes.memory.turns import flatten_content
from hermes.sessions import schema
from hermes.sessions.records import Session, State, StoredMessage

Message = dict[str, Any]

_SESSION = """SELECT id, title, parent, started, updated, ended, end_reason,
    (SELECT count(*) FROM turn WHERE turn.session = session.id AND state = 'done') FROM session"""


class Sessions:
    """The transcripts in the file *path*, which the first turn makes. Threads may share one.

    Every method raises StoreUnavailable where the file cannot be read or written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._database: Database | None = None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    # -- a conversation ----------------------------------------------------------------------------------

    def begin_turn(self, session_id: str, message: Message) -> int:
        """Keep what the person said before anything is done with it; the number of the turn, from 1.

        A session that is not there yet is begun, one that had ended goes on.
        """
        now = self._clock()
        with self._write() as con:
            con.execute(
                "INSERT INTO session (id, title, started, updated) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET updated = excluded.updated, ended = NULL, end_reason = ''",
                (session_id, _title(message), now, now),
            )
            (number,) = con.execute(
                "SELECT coalesce(max(number), 0) + 1 FROM turn WHERE session = ?", (session_id,)
            ).fetchone()
            con.execute("INSERT INTO turn VALUES (?, ?, ?, 'open', 0)", (session_id, number, now))
            _insert(con, session_id, number, 0, now, [message])
        return int(number)

    def finish_turn(self, session_id: str, number: int, answer: Sequence[Message], state: State) -> None:
        """The rest of the turn *number*: what the model said, with its tool calls and their results."""
        now = self._clock()
        with self._write() as con:
            con.execute(
                "UPDATE turn SET state = ? WHERE session = ? AND number = ?", (state, session_id, number)
            )
            _insert(con, session_id, number, 1, now, answer)
            con.execute("UPDATE session SET updated = ? WHERE id = ?", (now, session_id))

    def mark_kept(self, session_id: str, number: int) -> None:
        """The memory has the turn."""
        with self._write() as con:
            con.execute("UPDATE turn SET kept = 1 WHERE session = ? AND number = ?", (session_id, number))

    def owed(self) -> list[tuple[str, int]]:
        """Complete turns that the memory was not given: the process died in between."""
        return self._read(
            lambda con: con.execute(
                "SELECT session, number FROM turn WHERE state = 'done' AND kept = 0 ORDER BY time"
            ).fetchall()
        )

    def turn(self, session_id: str, number: int) -> list[Message]:
        """The messages of one turn."""
        return [row.message for row in self.transcript(session_id, every=True) if row.turn == number]

    def undo(self, session_id: str) -> list[Message]:
        """Take the last turn back; its messages, empty if there is none."""
        with self._write() as con:
            row = con.execute(
                "SELECT max(turn) FROM line WHERE session = ? AND said", (session_id,)
            ).fetchone()
            if row[0] is None:
                return []
            con.execute(
                "UPDATE turn SET state = 'undone' WHERE session = ? AND number = ?", (session_id, row[0])
            )
            lines = con.execute(
                "SELECT message FROM line WHERE session = ? AND turn = ? ORDER BY place", (session_id, row[0])
            )
            return [json.loads(text) for (text,) in lines]

    def branch(self, session_id: str, new_id: str) -> None:
        """Begin *new_id* with everything that was said in *session_id*."""
        now = self._clock()
        with self._write() as con:
            self._known(con, session_id)
            con.execute(
                "INSERT INTO session SELECT ?, title, id, ?, ?, NULL, '', context FROM session WHERE id = ?",
                (new_id, now, now, session_id),
            )
            con.execute(
                "INSERT INTO turn SELECT ?, number, time, state, 1 FROM turn "
                "WHERE session = ? AND number IN (SELECT turn FROM line WHERE session = ? AND said)",
                (new_id, session_id, session_id),
            )
            con.execute(
                "INSERT INTO message SELECT ?, turn, place, time, text, message FROM line "
                "WHERE session = ? AND said",
                (new_id, session_id),
            )

    def end(self, session_id: str, reason: str) -> None:
        """The session is over."""
        if not self.path.exists():
            return
        with self._write() as con:
            con.execute(
                "UPDATE session SET ended = ?, end_reason = ? WHERE id = ?",
                (self._clock(), reason, session_id),
            )

    def keep_context(self, session_id: str, messages: Sequence[Message], through: int) -> None:
        """What the model is given in place of everything up to the turn *through*."""
        text = json.dumps({"through": through, "messages": list(messages)}, ensure_ascii=False)
        with self._write() as con:
            con.execute("UPDATE session SET context = ? WHERE id = ?", (text, session_id))

    def context(self, session_id: str) -> tuple[list[Message], int]:
        """What was kept so, and the turn that it reaches to; an empty list and 0 without."""
        rows = self._read(
            lambda con: con.execute("SELECT context FROM session WHERE id = ?", (session_id,)).fetchall()
        )
        if not rows or not rows[0][0]:
            return [], 0
        kept = json.loads(rows[0][0])
        return kept["messages"], kept["through"]

    def said(self, session_id: str, *, after: int = 0) -> list[Message]:
        """The messages of the session that count, of the turns behind *after*."""
        rows = self._read(
            lambda con: con.execute(
                "SELECT message FROM line WHERE session = ? AND said AND turn > ? ORDER BY turn, place",
                (session_id, after),
            ).fetchall()
        )
        return [json.loads(text) for (text,) in rows]

    # -- looking -----------------------------------------------------------------------------------------

    def listing(self, *, limit: int | None = None) -> list[Session]:
        """The sessions, the one that was last spoken in first."""
        rows = self._read(
            lambda con: con.execute(
                f"{_SESSION} ORDER BY updated DESC, id LIMIT ?", (limit or -1,)
            ).fetchall()
        )
        return [Session(*row) for row in rows]

    def get(self, session_id: str) -> Session:
        """The session that is called so, or the only one that begins so. Raises NotFound, UsageError."""
        rows = self._read(
            lambda con: con.execute(
                f"{_SESSION} WHERE substr(id, 1, ?) = ? ORDER BY id", (len(session_id), session_id)
            ).fetchall()
        )
        found = [row for row in rows if row[0] == session_id] or rows
        if not found or not session_id:
            raise NotFound(f"there is no session {session_id!r}", next_step="hermes sessions list")
        if len(found) > 1:
            raise UsageError(
                f"{len(found)} sessions begin with {session_id!r}",
                next_step="say more of its id: hermes sessions list",
            )
        return Session(*found[0])

    def transcript(self, session_id: str, *, every: bool = False) -> list[StoredMessage]:
        """What was said in the session; with *every*, also what was taken back or never answered."""
        rows = self._read(
            lambda con: con.execute(
                "SELECT session, turn, message, time, state FROM line "
                "WHERE session = ? AND (said OR ?) ORDER BY turn, place",
                (session_id, every),
            ).fetchall()
        )
        return [_stored(row) for row in rows]

    def search(self, query: str, *, limit: int = 20) -> list[StoredMessage]:
        """Messages of the person or the model that hold every word of *query*, the newest first."""
        words = [f"%{_literal(word)}%" for word in query.split()]
        if not words:
            return []
        every = " AND ".join(["text LIKE ? ESCAPE '\\'"] * len(words))
        rows = self._read(
            lambda con: con.execute(
                "SELECT session, turn, message, time, state FROM line "  # noqa: S608 - a count of question marks
                f"WHERE said AND {every} ORDER BY time DESC LIMIT ?",
                (*words, limit),
            ).fetchall()
        )
        return [_stored(row) for row in rows]

    # -- changing ----------------------------------------------------------------------------------------

    def rename(self, session_id: str, title: str) -> None:
        """Call the session *title*. Raises NotFound."""
        with self._write() as con:
            self._known(con, session_id)
            con.execute("UPDATE session SET title = ? WHERE id = ?", (title, session_id))

    def delete(self, session_ids: Sequence[str]) -> int:
        """Delete the sessions, so that no byte of them is left in the file; how many there were."""
        if not self.path.exists():
            return 0
        with self._write() as con:
            gone = 0
            for session_id in session_ids:
                gone += con.execute("DELETE FROM session WHERE id = ?", (session_id,)).rowcount
                con.execute("DELETE FROM turn WHERE session = ?", (session_id,))
                con.execute("DELETE FROM message WHERE session = ?", (session_id,))
        self._scrub()
        return gone

    def forget(self, text: str) -> int:
        """Delete every turn whose messages hold *text*, with the summaries made of it; how many turns."""
        if not self.path.exists() or not text.strip():
            return 0
        like = f"%{_literal(json.dumps(text.strip(), ensure_ascii=False)[1:-1])}%"
        with self._write() as con:
            found = con.execute(
                "SELECT DISTINCT session, turn FROM message WHERE message LIKE ? ESCAPE '\\'", (like,)
            ).fetchall()
            con.executemany("DELETE FROM message WHERE session = ? AND turn = ?", found)
            con.executemany("DELETE FROM turn WHERE session = ? AND number = ?", found)
            con.executemany(
                "UPDATE session SET context = '', title = iif(? = 1, '', title) WHERE id = ?",
                [(turn, session_id) for session_id, turn in found],
            )
            con.execute("UPDATE session SET context = '' WHERE context LIKE ? ESCAPE '\\'", (like,))
        self._scrub()
        return len(found)

    # -- inside ------------------------------------------------------------------------------------------

    def _scrub(self) -> None:
        """Leave nothing of what was deleted in the file or its log."""
        with self._errors():
            self._open().vacuum()
            self._open().truncate_log()

    def _known(self, con: sqlite3.Connection, session_id: str) -> None:
        if con.execute("SELECT 1 FROM session WHERE id = ?", (session_id,)).fetchone() is None:
            raise NotFound(f"there is no session {session_id!r}", next_step="hermes sessions list")

    def _open(self) -> Database:
        with self._lock:
            if self._database is None:
                self._database = Database(self.path, create=schema.create)
            return self._database

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._open().transaction(durable=True) as con:
            yield con

    def _read(self, query: Callable[[sqlite3.Connection], list[Any]]) -> list[Any]:
        """The rows of *query*; none where there is no file yet, and reading makes none."""
        if not self.path.exists():
            return []
        with self._errors():
            return self._open().read(query)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as exc:
            raise StoreUnavailable(self.path, str(exc)) from exc


def _insert(
    con: sqlite3.Connection, session_id: str, turn: int, first: int, now: float, messages: Sequence[Message]
) -> None:
    con.executemany(
        "INSERT INTO message VALUES (?, ?, ?, ?, ?, ?)",
        [
            (session_id, turn, place, now, _searched(message), json.dumps(message, ensure_ascii=False))
            for place, message in enumerate(messages, first)
        ],
    )


def _stored(row: tuple[str, int, str, float, State]) -> StoredMessage:
    session_id, turn, text, when, state = row
    return StoredMessage(session_id, turn, json.loads(text), when, state)


def _searched(message: Message) -> str:
    return flatten_content(message.get("content")) if message.get("role") in ("user", "assistant") else ""


def _title(message: Message) -> str:
    text = " ".join(flatten_content(message.get("content")).split())
    return text if len(text) <= 60 else text[:59] + "…"


def _literal(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
