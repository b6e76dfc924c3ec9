"""One exchange with the model: its answer as it streams, the tools that it calls, and where that ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from hermes.memory.fences import StreamingContextScrubber
from hermes.model.answer import Answer, ToolCall
from hermes.model.client import Model

Message = dict[str, Any]

MOST_ROUNDS = 16
"""Calls of the model in one turn; after that it is told to answer without tools."""
_ENOUGH = json.dumps({"error": "no more tool calls in this turn: answer the user with what you have"})


@attrs.frozen
class Told:
    """What a turn came to."""

    text: str
    """The answer as it was shown."""
    messages: tuple[Message, ...] = attrs.field(repr=False)
    """What followed the person's message: answers, tool calls and their results."""
    state: str
    """``done`` or ``interrupted``."""
    number: int
    """Of the turn in its session."""
    usage: dict[str, int] = attrs.field(factory=dict)
    """Tokens of all calls of the turn together, and ``context``, what the last call was given."""
    recall: str = ""
    """What memory contributed, in one line; empty if nothing."""
    durable: bool = True
    """Whether what the memory shall keep is on disk."""
    notes: tuple[str, ...] = ()
    """What the person should know besides the answer."""


class Exchange:
    """Calls *model* until it has answered, running the tools that it asks for with *run_tool*."""

    def __init__(
        self,
        model: Model,
        tools: Sequence[Message],
        run_tool: Callable[[str, dict[str, Any]], str],
        show: Callable[[str], None],
        tool_begins: Callable[[str], None],
    ) -> None:
        self.messages: list[Message] = []
        self.usage: dict[str, int] = {}
        self.interrupted = False
        self._model = model
        self._tools = tools
        self._run_tool = run_tool
        self._show = show
        self._tool_begins = tool_begins

    def run(self, prompt: Sequence[Message]) -> None:
        """Exchange messages, from *prompt* on, until an answer needs no tool or the person stops it.

        KeyboardInterrupt ends the answer: what had come by then is kept, and ``interrupted`` says so. Raises
        ModelUnavailable; what had come by then stays in ``messages``.
        """
        try:
            for number in range(1, MOST_ROUNDS + 1):
                answer = self._ask([*prompt, *self.messages])
                if not answer.tool_calls:
                    return
                self._run_all(answer.tool_calls, stop=number == MOST_ROUNDS - 1)
        except KeyboardInterrupt:
            self.interrupted = True
            self._complete()

    @property
    def text(self) -> str:
        """Everything that was shown."""
        said = (m["content"] for m in self.messages if m["role"] == "assistant" and m.get("content"))
        return "\n\n".join(said)

    def _ask(self, prompt: list[Message]) -> Answer:
        stream = self._model.stream(prompt, tools=self._tools)
        scrubber, shown = StreamingContextScrubber(), []
        try:
            for piece in stream:
                if text := scrubber.feed(piece):
                    shown.append(text)
                    self._show(text)
            if text := scrubber.flush():
                shown.append(text)
                self._show(text)
            answer = stream.finish()
        except BaseException:
            self._keep(stream.close(), "".join(shown), calls=())
            raise
        self._keep(answer, "".join(shown), calls=answer.tool_calls)
        if not answer.complete and not answer.tool_calls:
            from hermes.errors import ModelUnavailable

            raise ModelUnavailable(f"{self._model.endpoint.host} broke off in the middle of its answer")
        return answer

    def _keep(self, answer: Answer, shown: str, *, calls: Sequence[ToolCall]) -> None:
        for name, count in answer.usage.items():
            self.usage[name] = self.usage.get(name, 0) + count
        if answer.usage:
            self.usage["context"] = answer.usage.get("prompt_tokens", 0)
        message: Message = {"role": "assistant", "content": shown}
        if calls:
            message["tool_calls"] = [call.as_message() for call in calls]
        if shown or calls:
            self.messages.append(message)

    def _run_all(self, calls: Sequence[ToolCall], *, stop: bool) -> None:
        for call in calls:
            if stop:
                result = _ENOUGH
            else:
                self._tool_begins(call.name)
                result = self._run(call)
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def _run(self, call: ToolCall) -> str:
        try:
            arguments = call.parsed()
        except ValueError as exc:
            return json.dumps({"error": f"the arguments are no JSON object: {exc}"})
        return self._run_tool(call.name, arguments)

    def _complete(self) -> None:
        """Give every tool call that was stopped a result, so that the conversation stays valid."""
        answered = {message["tool_call_id"] for message in self.messages if message["role"] == "tool"}
        for message in list(self.messages):
            for call in message.get("tool_calls") or ():
                if call["id"] not in answered:
                    stopped = json.dumps({"error": "stopped by the user"})
                    self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": stopped})
