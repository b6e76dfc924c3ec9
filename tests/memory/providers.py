"""Providers for tests: one that records, one whose members wait until they are let go."""

# ruff: noqa: D102 - the members are those of the contract

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hermes.memory.provider import MemoryProvider

Seen = tuple[Any, ...]


class Recording(MemoryProvider):
    """Keeps what it was told, in order; *recalls* is what it answers to a prefetch."""

    delivery = "stored"

    def __init__(self, name: str = "recording", recalls: str = "", tools: list[Any] | None = None) -> None:
        self._name = name
        self.recalls = recalls
        self.tools = tools or []
        self.seen: list[Seen] = []

    @property
    def name(self) -> str:
        return self._name

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        self.seen.append(("initialize", session_id, kwargs))

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return self.tools

    def system_prompt_block(self) -> str:
        return f"{self.name} is here"

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        self.seen.append(("prefetch", query, session_id))
        return self.recalls

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        self.seen.append(("queue_prefetch", query, session_id))

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
        turn_author: str | None = None,
        idempotency_key: str = "",
        turn_time: float = 0.0,
    ) -> None:
        self.seen.append(("sync_turn", user_content, assistant_content, session_id))
        self.last_turn = {
            "messages": messages,
            "turn_author": turn_author,
            "idempotency_key": idempotency_key,
            "turn_time": turn_time,
        }

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        self.seen.append(("tool", tool_name, args, kwargs))
        return '{"ok": true}'

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        self.seen.append(("on_turn_start", turn_number, message))

    def on_session_end(self, messages: list[dict[str, Any]]) -> None:
        self.seen.append(("on_session_end", messages))

    def on_session_switch(self, new_session_id: str, **kwargs: Any) -> None:
        self.seen.append(("on_session_switch", new_session_id, kwargs))

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        self.seen.append(("on_memory_write", action, target, content, metadata))

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> None:
        self.seen.append(("on_delegation", task, result, child_session_id))

    def shutdown(self) -> None:
        self.seen.append(("shutdown",))

    def of(self, hook: str) -> list[Seen]:
        """What it was told by *hook*, without the name."""
        return [seen[1:] for seen in self.seen if seen[0] == hook]


class Waiting(Recording):
    """Its members named in *hooks* wait for ``release``; the first one to be called sets ``entered``."""

    def __init__(self, *hooks: str, name: str = "waiting", recalls: str = "") -> None:
        super().__init__(name, recalls, [{"name": "wait_tool", "parameters": {}}])
        self.entered = threading.Event()
        self.release = threading.Event()
        for hook in hooks:
            setattr(self, hook, self._waiting(getattr(super(), hook)))

    def _waiting(self, member: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            self.entered.set()
            assert self.release.wait(60), "the test never let it go"
            return member(*args, **kwargs)

        return wait
