"""Which program wrote a file, told by what is in it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import attrs

from hermes.importers import chatgpt, claude, claude_code, codex, knowledge_graph, mem0, openai
from hermes.importers.common import Found

_LOOKED_AT = 50
_HEAD = 4 << 20
_CODEX = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


@attrs.frozen
class Format:
    """A kind of file, and how it is read."""

    name: str
    read: Callable[[IO[bytes], str], Iterator[Found]]


_OPENAI = Format("messages in the form of OpenAI", openai.read)
_CHATGPT = Format("an export of ChatGPT", chatgpt.read)
_CLAUDE = Format("an export of Claude", claude.read)
_CLAUDE_CODE = Format("a transcript of Claude Code", claude_code.read)
_CODEX_ROLLOUT = Format("a rollout of Codex", codex.read)
_GRAPH_LINES = Format("the file of an MCP memory server", knowledge_graph.read_lines)
_GRAPH = Format("the graph of an MCP memory server", knowledge_graph.read_graph)
_MEM0 = Format("memories of Mem0", mem0.read_results)
_MEM0_ARRAY = Format("memories of Mem0", mem0.read_array)
_UNKNOWN = Format("nothing that is known here", openai.read)
"""Read all the same: so each line is named with what is wrong with it."""
HERMES_AGENT = "sessions of hermes-agent"


def recognise(file: IO[bytes]) -> Format:
    """What *file*, which can be sought in, holds; what nothing else is taken for is read as messages.

    It stands at its beginning afterwards.
    """
    head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    file.seek(0)
    found = _document(file) if head[:1] == b"[" else _lines(head) if head[:1] == b"{" else None
    if found is None and head[:1] == b"{":
        found = _object(file)
    file.seek(0)
    return found or (_OPENAI if head[:1] in (b"[", b"{") else _UNKNOWN)


def is_hermes_agent(path: Path) -> bool:
    """Whether the SQLite file at *path* has the tables of hermes-agent's sessions."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as con:
            columns = {
                table: {row[1] for row in con.execute(f"PRAGMA table_info({table})")}
                for table in ("sessions", "messages")
            }
    except sqlite3.Error:
        return False
    return {"id", "source", "started_at"} <= columns["sessions"] and {
        "session_id",
        "role",
        "timestamp",
    } <= columns["messages"]


def _lines(head: bytes) -> Format | None:
    """The format of JSON lines; None where the first line alone is no JSON or nothing stands behind it."""
    rows = head.split(b"\n")[: _LOOKED_AT + 1]
    whole = [row for row in (rows if len(head) < _HEAD else rows[:-1]) if row.strip()]
    records = [record for row in whole if isinstance(record := _parsed(row), dict)]
    if not records or (len(whole) == 1 and not _of_lines(records[0])):
        return None
    return next((found for record in records if (found := _of_lines(record))), None)


def _of_lines(record: Mapping[str, Any]) -> Format | None:
    kind = record["type"] if isinstance(record.get("type"), str) else ""
    if kind in ("entity", "relation") and {"name", "entityName", "from", "from_id"} & record.keys():
        return _GRAPH_LINES
    if kind in _CODEX and isinstance(record.get("payload"), dict):
        return _CODEX_ROLLOUT
    if kind == "message" and isinstance(record.get("content"), list) and "role" in record:
        return _CODEX_ROLLOUT
    if "sessionId" in record and ("parentUuid" in record or kind in ("queue-operation", "summary", "user")):
        return _CLAUDE_CODE
    if kind in ("user", "assistant") and isinstance(record.get("message"), dict):
        return _CLAUDE_CODE
    return _OPENAI if "role" in record or isinstance(record.get("messages"), list) else None


def _parsed(row: bytes) -> Any:
    try:
        return json.loads(row)
    except ValueError:
        return None


def _document(file: IO[bytes]) -> Format | None:
    """The format of an array, by its first element."""
    import ijson

    try:
        first = next(ijson.items(file, "item", use_float=True), None)
    except (ijson.JSONError, ValueError):
        return _by_keys(file)
    if not isinstance(first, Mapping):
        return None
    if "mapping" in first:
        return _CHATGPT
    if "chat_messages" in first:
        return _CLAUDE
    return _MEM0_ARRAY if "memory" in first and "id" in first else None


def _by_keys(file: IO[bytes]) -> Format | None:
    """The same where not even the first element is whole: by the keys that it has."""
    file.seek(0)
    head = file.read(_HEAD)
    for key, found in ((b'"mapping"', _CHATGPT), (b'"chat_messages"', _CLAUDE), (b'"memory"', _MEM0_ARRAY)):
        if key in head:
            return found
    return None


def _object(file: IO[bytes]) -> Format | None:
    """The format of one object, by its keys."""
    import ijson

    try:
        for prefix, event, value in ijson.parse(file):
            if event == "map_key" and prefix == "":
                if value in ("entities", "relations"):
                    return _GRAPH
                if value in ("mapping", "chat_messages"):
                    return _single(value)
                if value == "messages":
                    return _OPENAI
            elif event == "map_key" and prefix == "results.item" and value == "memory":
                return _MEM0
    except (ijson.JSONError, ValueError):
        return None
    return None


def _single(key: str) -> Format:
    """One conversation that is no element of an array."""
    module, known = (chatgpt, _CHATGPT) if key == "mapping" else (claude, _CLAUDE)

    def read(file: IO[bytes], name: str) -> Iterator[Found]:
        yield from module.conversation(name, json.load(file))

    return attrs.evolve(known, read=read)
