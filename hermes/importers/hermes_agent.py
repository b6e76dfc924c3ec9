"""The sessions of hermes-agent: ``state.db``, opened for reading only.

What was rewound is left out, what a compaction archived is taken in, its summaries are not. A session that
goes on after a compaction repeats what it protects: such repetitions are taken in once.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.importers.common import Found, moment, said, texts
from hermes.memory.conversations import Malformed

SOURCE = "hermes-agent"
_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_STRUCTURED = "\0json:"


def read(path: Path, name: str) -> Iterator[Found]:
    """The messages of every session, in order."""
    try:
        with _opened(path) as con:
            for session in _sessions(con):
                yield from _messages(con, session)
    except sqlite3.Error as exc:
        yield Malformed(name, f"the database cannot be read: {exc}")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database as it is now. One with a write-ahead log is copied first: reading it would write beside it."""
    with contextlib.ExitStack() as stack:
        if Path(f"{path}-wal").exists():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-import-")))
            for suffix in ("", "-wal"):
                shutil.copy2(f"{path}{suffix}", folder / f"state.db{suffix}")
            path = folder / "state.db"
            uri = path.as_uri()
        else:
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        con = stack.enter_context(contextlib.closing(sqlite3.connect(uri, uri=True)))
        con.row_factory = sqlite3.Row
        yield con


def _sessions(con: sqlite3.Connection) -> Iterator[sqlite3.Row]:
    """The sessions of the person: not those that were handed to a subagent."""
    rows = {row["id"]: row for row in con.execute("SELECT * FROM sessions ORDER BY started_at, id")}
    for row in rows.values():
        parent = rows.get(_of(row, "parent_session_id"))
        if parent is None or _goes_on(row, parent):
            yield row


def _goes_on(row: sqlite3.Row, parent: sqlite3.Row) -> bool:
    """Whether *row* continues or branches from *parent*; other children were run by a model."""
    try:
        config = json.loads(_of(row, "model_config") or "{}")
    except ValueError:
        config = {}
    if isinstance(config, dict) and config.get("_branched_from"):
        return True
    return _of(parent, "end_reason") in ("compression", "branched") or _stem(row) == _stem(parent) != ""


def _stem(row: sqlite3.Row) -> str:
    """The title without its number: ``Garden #2`` goes on from ``Garden``."""
    return re.sub(r" #[0-9]+\Z", "", str(_of(row, "title") or ""))


def _messages(con: sqlite3.Connection, session: sqlite3.Row) -> Iterator[Found]:
    archived: Counter[int] = Counter()
    """What a compaction archived; it may stand among the live messages once more."""
    rows = con.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session["id"],))
    for row in rows:
        compacted = bool(_of(row, "compacted"))
        rewound = _of(row, "active") == 0 and not compacted
        if row["role"] not in ("user", "assistant") or _of(row, "observed") or rewound:
            continue
        text = _text(row["content"])
        if text is None:
            yield Malformed(f"{session['id']} message {row['id']}", "its content is no text")
            continue
        if not text.strip() or text.startswith(_SUMMARY):
            continue
        mark = hash((row["role"], text))
        if compacted:
            archived[mark] += 1
        elif archived[mark]:
            archived[mark] -= 1
            continue
        yield said(SOURCE, str(session["id"]), str(row["id"]), row["role"], text, moment(row["timestamp"]))


def _text(content: Any) -> str | None:
    if content is None:
        return ""
    if not isinstance(content, str):
        return None
    if content.startswith(_STRUCTURED):
        try:
            return texts(json.loads(content[len(_STRUCTURED) :]))
        except ValueError:
            return None
    return content


def _of(row: sqlite3.Row, column: str) -> Any:
    """The value in *column*; None in a database that has no such column yet."""
    return row[column] if column in row.keys() else None  # noqa: SIM118 - a Row is no mapping
