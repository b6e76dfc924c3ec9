"""Small files as other programs write them; everything in them is invented."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any


def claude_code(folder: Path) -> Path:
    """A transcript with an injected context, a compaction, a subagent, and a line that was taken back."""

    def line(kind: str, uuid: str, parent: str | None, message: Any = None, **more: Any) -> dict[str, Any]:
        facts = {
            "parentUuid": parent,
            "type": kind,
            "uuid": uuid,
            "timestamp": "2026-03-02T09:00:01.000Z",
            "sessionId": "s-1",
        }
        return {**facts, **({"message": message} if message else {}), **more}

    def block(kind: str, **facts: Any) -> dict[str, Any]:
        return {"id": "m-1", "role": "assistant", "content": [{"type": kind, **facts}]}

    rows = [
        {"type": "queue-operation", "sessionId": "s-1", "content": "NOT THIS: queued"},
        line("attachment", "u0", None, attachment={"content": "NOT THIS: injected"}),
        line("user", "u1", "u0", {"role": "user", "content": "I keep bees on the roof."}),
        line("user", "u1b", "u0", {"role": "user", "content": "NOT THIS: taken back"}),
        line("assistant", "u2", "u1", block("thinking", thinking="NOT THIS: thought")),
        line("assistant", "u3", "u2", block("text", text="How many hives?")),
        line(
            "assistant",
            "u4",
            "u3",
            block("tool_use", id="t", name="Bash", input={"command": "NOT THIS: tool"}),
        ),
        line(
            "user",
            "u5",
            "u4",
            {"role": "user", "content": [{"type": "tool_result", "content": "NOT THIS: result"}]},
        ),
        line("user", "u6", "u5", {"role": "user", "content": "<command-name>/model</command-name> NOT THIS"}),
        line("user", "u7", "u6", {"role": "user", "content": "NOT THIS: a summary"}, isCompactSummary=True),
        line("user", "u8", "u7", {"role": "user", "content": "NOT THIS: a subagent"}, isSidechain=True),
        line("user", "u9", "u7", {"role": "user", "content": "Four hives, since May."}),
    ]
    return _lines(folder / "claude-code.jsonl", rows)


def codex(folder: Path) -> Path:
    """A rollout whose events repeat its messages."""

    def row(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-03-02T10:00:01.000Z", "type": kind, "payload": payload}

    def message(role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return row("response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    rows = [
        row("session_meta", id="r-1", cwd="/tmp", base_instructions="NOT THIS"),
        message("developer", "NOT THIS: instructions"),
        message("user", "<environment_context>NOT THIS</environment_context>"),
        message("user", "The greenhouse key hangs behind the clock."),
        row("event_msg", type="user_message", message="NOT THIS: again"),
        row("response_item", type="function_call", name="shell", arguments="NOT THIS"),
        message("assistant", "I will remember the clock."),
        row("compacted", message="NOT THIS: summary"),
    ]
    return _lines(folder / "rollout.jsonl", rows)


def chatgpt(folder: Path) -> Path:
    """Two conversations, one with a branch that was given up, hidden messages and a tool."""

    def node(own: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
        content = more.pop("content", {"content_type": "text", "parts": [text]})
        message = {
            "id": own,
            "author": {"role": role},
            "create_time": 1772450000.5,
            "content": content,
            "weight": 1.0,
            "recipient": "all",
            **more,
        }
        return {"id": own, "parent": parent, "children": [], "message": message}

    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        {"id": "root", "parent": None, "children": ["a"], "message": None},
        node("h", "root", "user", "NOT THIS: hidden", metadata=hidden),
        node("a", "h", "user", "My sourdough starter is called Otto."),
        node("x", "a", "assistant", "NOT THIS: given up"),
        node("b", "a", "assistant", "Feed Otto daily."),
        node("c", "b", "assistant", "NOT THIS: for a tool", recipient="python"),
        node("d", "c", "tool", "NOT THIS: output"),
        node(
            "e",
            "d",
            "assistant",
            "",
            content={
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer"}, "Twice in summer."],
            },
        ),
    ]
    one = {
        "title": "Bread",
        "conversation_id": "c-1",
        "create_time": 1.0,
        "current_node": "e",
        "mapping": {n["id"]: n for n in nodes},
    }
    other = {
        "title": "",
        "id": "c-2",
        "mapping": {n["id"]: n for n in [node("p", None, "user", "The cellar floods in March.")]},
    }
    return _json(folder / "chatgpt.json", [one, other])


def chatgpt_zip(folder: Path) -> Path:
    """The same, packed."""
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(chatgpt(folder), "conversations.json")
        archive.writestr("chat.html", "<p>NOT THIS</p>")
    return path


def claude(folder: Path) -> Path:
    """A conversation with an attachment, an old message without blocks, and an empty conversation."""
    messages = [
        {
            "uuid": "m1",
            "text": "NOT THIS: placeholder",
            "content": [{"type": "text", "text": "My tram leaves at 7:42."}],
            "sender": "human",
            "created_at": "2026-03-03T08:00:00.000000Z",
            "attachments": [{"file_name": "line.txt", "extracted_content": "Line 6 to the harbour."}],
        },
        {
            "uuid": "m2",
            "content": [
                {"type": "thinking", "thinking": "NOT THIS: thought"},
                {"type": "tool_use", "name": "x", "input": {"q": "NOT THIS"}},
                {"type": "text", "text": "Line 6 then."},
            ],
            "sender": "assistant",
            "created_at": "2026-03-03T08:01:00Z",
        },
        {"uuid": "m3", "text": "And back at six.", "sender": "human", "created_at": None},
    ]
    return _json(
        folder / "claude.json",
        [
            {"uuid": "e-1", "name": "Tram", "chat_messages": messages},
            {"uuid": "e-2", "name": "", "chat_messages": []},
        ],
    )


def hermes_agent(folder: Path) -> Path:
    """Sessions with a rewound turn, an archived one, structured content and a subagent's session."""
    path = folder / "state.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as con:
        con.executescript(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model_config TEXT, parent_session_id TEXT, "
            "started_at REAL, end_reason TEXT, title TEXT);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL, "
            "observed INTEGER DEFAULT 0, active INTEGER DEFAULT 1, compacted INTEGER DEFAULT 0, api_content TEXT);"
        )
        con.executemany(
            "INSERT INTO sessions VALUES (?, 'cli', NULL, ?, ?, ?, ?)",
            [
                ("a", None, 1.0, "compression", "Plot"),
                ("b", "a", 2.0, "cli_close", "Plot"),
                ("sub", "b", 3.0, None, None),
            ],
        )
        con.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp, observed, active, compacted, api_content) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                ("a", "user", "My allotment is plot 9.", 10.0, 0, 0, 1, None),
                ("a", "assistant", "Plot 9 it is.", 11.0, 0, 0, 1, None),
                ("a", "user", "NOT THIS: rewound", 12.0, 0, 0, 0, None),
                ("a", "user", "[CONTEXT COMPACTION] NOT THIS", 13.0, 0, 1, 0, None),
                ("a", "assistant", "Plot 9 it is.", 13.5, 0, 1, 0, None),
                (
                    "a",
                    "user",
                    "Beans go in first.",
                    14.0,
                    0,
                    1,
                    0,
                    "Beans go in first. <memory-context>NOT THIS</memory-context>",
                ),
                (
                    "b",
                    "user",
                    '\0json:[{"type": "text", "text": "Then the peas."}, {"type": "image_url"}]',
                    20.0,
                    0,
                    1,
                    0,
                    None,
                ),
                ("b", "tool", "NOT THIS: tool", 21.0, 0, 1, 0, None),
                ("b", "user", "NOT THIS: of the group", 22.0, 1, 1, 0, None),
                ("sub", "user", "NOT THIS: a subagent", 30.0, 0, 1, 0, None),
            ],
        )
        con.commit()
    return path


def mem0(folder: Path) -> Path:
    """Two memories, one past its date."""
    items = [
        {
            "id": "1",
            "memory": "Sleeps with the window open",
            "created_at": "2026-03-04T10:00:00+00:00",
            "user_id": "u",
        },
        {"id": "2", "memory": "NOT THIS: expired", "expiration_date": "2020-01-01"},
    ]
    return _json(folder / "mem0.json", {"count": 2, "next": None, "results": items})


def mem0_array(folder: Path) -> Path:
    """The same, as older versions give it."""
    return _json(folder / "mem0-array.json", json.loads(mem0(folder).read_text())["results"])


def graph_lines(folder: Path) -> Path:
    """Entities and a relation."""
    rows: list[dict[str, Any]] = [
        {"type": "entity", "name": "Robin", "entityType": "person", "observations": ["Plays the oboe"]},
        {"type": "relation", "from": "Robin", "to": "Choir", "relationType": "sings_in"},
    ]
    return _lines(folder / "memory.jsonl", rows)


def graph(folder: Path) -> Path:
    """The same, as the tool prints it."""
    entity, relation = (json.loads(line) for line in graph_lines(folder).read_text().splitlines())
    return _json(folder / "graph.json", {"entities": [entity], "relations": [relation]})


FILES: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "Claude Code": (claude_code, ["I keep bees on the roof.", "How many hives?", "Four hives, since May."]),
    "Codex": (codex, ["The greenhouse key hangs behind the clock.", "I will remember the clock."]),
    "ChatGPT": (
        chatgpt,
        [
            "My sourdough starter is called Otto.",
            "Feed Otto daily.",
            "Twice in summer.",
            "The cellar floods in March.",
        ],
    ),
    "ChatGPT, packed": (
        chatgpt_zip,
        [
            "My sourdough starter is called Otto.",
            "Feed Otto daily.",
            "Twice in summer.",
            "The cellar floods in March.",
        ],
    ),
    "Claude": (
        claude,
        ["My tram leaves at 7:42.\n\n[line.txt]\nLine 6 to the harbour.", "Line 6 then.", "And back at six."],
    ),
    "hermes-agent": (
        hermes_agent,
        ["My allotment is plot 9.", "Plot 9 it is.", "Beans go in first.", "Then the peas."],
    ),
    "Mem0": (mem0, ["Sleeps with the window open"]),
    "Mem0, an array": (mem0_array, ["Sleeps with the window open"]),
    "MCP memory": (graph_lines, ["Robin (person): Plays the oboe", "Robin sings in Choir"]),
    "MCP memory, the graph": (graph, ["Robin (person): Plays the oboe", "Robin sings in Choir"]),
}
"""Each kind of file: what makes one, and the texts that are to be read from it."""


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


def _json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), "utf-8")
    return path
