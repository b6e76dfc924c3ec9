"""Driving a context engine safely: whatever it does, the conversation goes on with messages that are valid."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import attrs

from hermes.context.engine import ContextEngine, Message
from hermes.context.messages import estimated_tokens, fault_of
from hermes.errors import HermesError, ProviderUnavailable
from hermes.memory.lanes import describe
from hermes.model.tools import tool_name


@attrs.frozen
class Compacted:
    """What became of an attempt to make room: the messages to go on with, and what it did or why not."""

    messages: list[Message]
    done: bool
    before: int
    """Tokens, estimated."""
    after: int
    reason: str = ""


class Compaction:
    """Asks *engine* for room; *ask_memory* gives what the memory providers want in the summary."""

    def __init__(
        self,
        engine: ContextEngine,
        ask_memory: Callable[[list[Message]], str],
        log: logging.Logger | None = None,
    ) -> None:
        self.engine = engine
        self.failures = 0
        self._ask_memory = ask_memory
        self._log = log or logging.getLogger("hermes.context")

    def is_due(self, messages: list[Message], tokens: int | None) -> bool:
        """Whether the engine wants to compress, by *tokens* of the last call or else by its own estimate."""
        wants = self._ask("should_compress", tokens) if tokens else False
        return bool(wants or self._ask("should_compress_preflight", messages))

    def run(
        self, messages: list[Message], *, tokens: int | None = None, focus: str = "", force: bool = False
    ) -> Compacted:
        """Compress *messages*; where that fails for any reason they come back as they are, with the reason.

        A memory provider whose checkpoint failed stops it: nothing may be summarised away then.
        """
        before = estimated_tokens(messages)
        copy = [dict(message) for message in messages]
        try:
            if not self.engine.has_content_to_compress(copy):
                return Compacted(messages, False, before, before, "there is nothing to compress yet")
            known = self._ask_memory(copy)
            shorter = self.engine.compress(
                copy, current_tokens=tokens, focus_topic=focus or None, force=force, memory_context=known
            )
        except ProviderUnavailable as exc:
            return self._failed(messages, before, str(exc))
        except Exception as exc:  # noqa: BLE001 - an engine may raise anything, and the conversation goes on
            return self._failed(
                messages, before, exc.message if isinstance(exc, HermesError) else describe(exc)
            )
        if fault := fault_of(shorter):
            return self._failed(messages, before, f"{self.engine.name} gave no valid conversation: {fault}")
        after = estimated_tokens(shorter)
        if after >= before:
            return Compacted(messages, False, before, before, "nothing became shorter")
        return Compacted(shorter, True, before, after)

    def tell(self, hook: str, *args: Any, **kwargs: Any) -> None:
        """Call the hook *hook* of the engine; one that raises is logged."""
        self._ask(hook, *args, **kwargs)

    def status(self) -> dict[str, Any]:
        """What the engine says of itself."""
        said = self._ask("get_status")
        return said if isinstance(said, dict) else {}

    def run_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Run a tool of the engine; the result is JSON text, also for what goes wrong."""
        if not any(tool_name(schema) == name for schema in self._ask("get_tool_schemas") or ()):
            return json.dumps({"error": f"there is no tool {name}"})
        answer = self._ask("handle_tool_call", name, arguments)
        return answer if isinstance(answer, str) else json.dumps({"error": f"{name} failed"})

    def _ask(self, member: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self.engine, member)(*args, **kwargs)
        except Exception as exc:  # noqa: BLE001 - an engine may raise anything, and the conversation goes on
            self.failures += 1
            self._log.warning("context engine %r: %s: %s", self.engine.name, member, describe(exc))
            return None

    def _failed(self, messages: list[Message], before: int, reason: str) -> Compacted:
        self.failures += 1
        self._log.warning("the conversation was not compressed: %s", reason)
        return Compacted(messages, False, before, before, reason)
