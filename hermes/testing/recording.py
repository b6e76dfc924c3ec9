"""A provider that writes down what it was asked, for tests."""

from __future__ import annotations

import copy
import json
import threading
from typing import Any, ClassVar, Literal

from hermes.memory.provider import MemoryProvider, Message


class RecordingProvider(MemoryProvider):
    """A memory provider whose ``calls`` are every call it had: the member's name and what it was given.

    *recall* is what ``prefetch`` answers. Tests that wait for a delivery use ``wait_for``.
    """

    delivery: ClassVar[Literal["accepted", "stored"]] = "stored"

    def __init__(self, name: str = "recording", *, recall: str = "") -> None:
        self._name = name
        self.recall = recall
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._changed = threading.Condition()

    @property
    def name(self) -> str:
        """The name it was made with."""
        return self._name

    def named(self, member: str) -> list[dict[str, Any]]:
        """What *member* was given, call by call."""
        with self._changed:
            return [given for called, given in self.calls if called == member]

    def wait_for(self, member: str, count: int = 1, timeout: float = 10.0) -> list[dict[str, Any]]:
        """Wait until *member* was called *count* times, *timeout* seconds at most; ``TimeoutError`` then."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.named(member)) >= count, timeout):
                raise TimeoutError(f"{member} was called {len(self.named(member))} times, not {count}")
            return self.named(member)

    def _record(self, member: str, **given: Any) -> None:
        with self._changed:
            self.calls.append((member, copy.deepcopy(given)))
            self._changed.notify_all()

    def is_available(self) -> bool:
        """Always."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Recorded."""
        self._record("initialize", session_id=session_id, **kwargs)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """One tool, ``<name>_echo``, that answers with its arguments."""
        return [
            {
                "name": f"{self._name}_echo",
                "description": "Answers with what it was given.",
                "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
            }
        ]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Recorded; the answer is *args*."""
        self._record("handle_tool_call", tool_name=tool_name, args=args)
        return json.dumps({"echo": args})

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Recorded; the answer is ``recall``."""
        self._record("prefetch", query=query, session_id=session_id)
        return self.recall

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """Recorded."""
        self._record("queue_prefetch", query=query, session_id=session_id)

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        turn_author: str | None = None,
        idempotency_key: str = "",
    ) -> None:
        """Recorded."""
        self._record(
            "sync_turn",
            user=user_content,
            assistant=assistant_content,
            session_id=session_id,
            messages=messages,
            turn_author=turn_author,
            key=idempotency_key,
        )

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """Recorded."""
        self._record("on_turn_start", turn_number=turn_number, message=message)

    def on_session_end(self, messages: list[Message]) -> None:
        """Recorded."""
        self._record("on_session_end", messages=messages)

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """Recorded."""
        self._record(
            "on_session_switch",
            new=new_session_id,
            parent=parent_session_id,
            reset=reset,
            rewound=rewound,
            **kwargs,
        )

    def on_pre_compress(self, messages: list[Message], *, require_checkpoint: bool = False) -> str:
        """Recorded; no text for the summary."""
        self._record("on_pre_compress", messages=messages)
        return ""

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Recorded."""
        self._record("on_memory_write", action=action, target=target, content=content, metadata=metadata)

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> None:
        """Recorded."""
        self._record("on_delegation", task=task, result=result, child_session_id=child_session_id)

    def shutdown(self) -> None:
        """Recorded."""
        self._record("shutdown")
