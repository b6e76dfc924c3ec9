"""The background pass that lets the model store what the last turns were worth."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from hermes.errors import HermesError
from hermes.memory.lanes import describe
from hermes.memory.manager import MemoryManager
from hermes.memory.schemas import BUILTIN_TOOL
from hermes.model.client import Model
from hermes.model.tools import as_tool, tool_name

Message = dict[str, Any]

ROUNDS = 3
LAST_MESSAGES = 40
_TASK = (
    "Look at the conversation so far and decide whether it holds something worth remembering for later "
    "conversations: who the person is, what they prefer, decisions, facts about their work that will last. "
    "If so, store it with the memory tool: short entries, nothing that is stored already, nothing that only "
    "matters now, no secrets. If nothing is worth it, answer with the word nothing. The person does not see "
    "your answer."
)


class Nudge:
    """Every *every* turns of the person (0: never) the model is offered the memory tool and nothing else."""

    def __init__(
        self,
        memory: MemoryManager,
        model: Model,
        every: int,
        told: Callable[[str], None],
        log: logging.Logger,
    ) -> None:
        self.failures = 0
        self._memory = memory
        self._model = model
        self._every = every
        self._told = told
        self._log = log
        self._turns = 0
        self._thread: threading.Thread | None = None

    def turn_ended(self, system: Message, context: Sequence[Message]) -> None:
        """Count a turn; begin a pass in the background when it is time, unless one is still going on."""
        self._turns += 1
        if not self._every or self._turns % self._every or (self._thread and self._thread.is_alive()):
            return
        schemas = self._memory.get_all_tool_schemas()
        tools = [as_tool(schema) for schema in schemas if tool_name(schema) == BUILTIN_TOOL]
        if not tools:
            return
        messages = [system, *_whole(context[-LAST_MESSAGES:]), {"role": "user", "content": _TASK}]
        self._thread = threading.Thread(
            target=self._pass, args=(messages, tools), name="hermes-nudge", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Give a pass that is going on *seconds* to come to its end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _pass(self, messages: list[Message], tools: list[Message]) -> None:
        stored = waiting = 0
        try:
            for _ in range(ROUNDS):
                answer = self._model.stream(messages, tools=tools).finish()
                if not answer.tool_calls:
                    break
                messages.append(
                    {
                        "role": "assistant",
                        "content": answer.text,
                        "tool_calls": [c.as_message() for c in answer.tool_calls],
                    }
                )
                for call in answer.tool_calls:
                    result = self._run(call.name, call.arguments)
                    outcome = json.loads(result)
                    stored += bool(outcome.get("success")) and not outcome.get("staged")
                    waiting += bool(outcome.get("staged"))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        except HermesError as exc:
            self.failures += 1
            self._log.info("the memory pass did not come to an end: %s", exc)
        except Exception as exc:  # noqa: BLE001 - nobody waits for this thread: what stops it is logged
            self.failures += 1
            self._log.warning("the memory pass failed: %s", describe(exc))
        if stored:
            self._told(f"memory: {stored} {'entry' if stored == 1 else 'entries'} stored")
        if waiting:
            self._told(
                f"memory: {waiting} {'write waits' if waiting == 1 else 'writes wait'} for you: hermes memory pending"
            )

    def _run(self, name: str, arguments: str) -> str:
        if name != BUILTIN_TOOL:
            return json.dumps({"error": f"only the tool {BUILTIN_TOOL} can be used here"})
        return self._memory.handle_tool_call(name, json.loads(arguments), write_origin="nudge")


def _whole(messages: Sequence[Message]) -> list[Message]:
    """*messages* from the first that the person said on: nothing is torn from what it belongs to."""
    for start, message in enumerate(messages):
        if message.get("role") == "user":
            return list(messages[start:])
    return []
