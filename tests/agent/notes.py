"""A provider that keeps turns in a file for each user, written against the names that plugins import."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agent.memory_provider import MemoryProvider
from hermes_constants import get_hermes_home


class NotesProvider(MemoryProvider):  # type: ignore[misc] # its base is served, not installed
    """Keeps what was said, and what it was called with."""

    delivery = "stored"

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.session_id = ""
        self.user_id = ""
        self.started: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Its name."""
        return "notes"

    @property
    def file(self) -> Path:
        """Where the notes of the user lie."""
        return Path(get_hermes_home()) / "notes" / f"{self.user_id or 'anyone'}.jsonl"

    def is_available(self) -> bool:
        """Always."""
        self.calls.append(("is_available", None))
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Start."""
        self.calls.append(("initialize", session_id))
        self.started = kwargs
        self.session_id = session_id
        self.user_id = str(kwargs.get("user_id") or "")
        self.file.parent.mkdir(parents=True, exist_ok=True)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """One tool."""
        self.calls.append(("get_tool_schemas", None))
        return [{"name": "notes_add", "description": "Keeps a note.", "parameters": {"type": "object"}}]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Keep a note."""
        self._keep({"note": args["content"]})
        return json.dumps({"kept": args["content"], "tool": tool_name})

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Notes that hold a word of the query."""
        words = {word for word in _words(query) if len(word) > 3}
        kept = self.file.read_text().splitlines() if self.file.exists() else []
        return "\n".join(line for line in kept if words & _words(line))

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "") -> None:
        """Keep a turn."""
        self._keep({"session": session_id, "user": user_content, "assistant": assistant_content})

    def on_session_end(self, messages: list[dict[str, Any]]) -> None:
        """Noted."""
        self.calls.append(("on_session_end", len(messages)))

    def on_session_switch(self, new_session_id: str, **kwargs: Any) -> None:
        """Go on in another session."""
        self.calls.append(("on_session_switch", (new_session_id, kwargs)))
        self.session_id = new_session_id

    def shutdown(self) -> None:
        """Noted."""
        self.calls.append(("shutdown", None))

    def _keep(self, record: dict[str, Any]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
