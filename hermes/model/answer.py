"""An answer that arrives in pieces, put together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class ToolCall:
    """One tool that the model wants run."""

    id: str
    name: str
    arguments: str
    """As the model wrote it; JSON if all is well."""

    def parsed(self) -> dict[str, Any]:
        """The arguments. Raises ValueError with what is wrong with them."""
        value = json.loads(self.arguments or "{}")
        if not isinstance(value, dict):
            raise ValueError(f"the arguments are {type(value).__name__}, expected an object")
        return value

    def as_message(self) -> dict[str, Any]:
        """The call, as a message carries it."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


@attrs.frozen
class Answer:
    """What the model said."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, int] = attrs.field(factory=dict)
    """``prompt_tokens``, ``completion_tokens``, ``total_tokens``; empty where the server does not count."""
    finish_reason: str = ""
    """Empty where the stream ended without one: the answer was cut off."""

    @property
    def complete(self) -> bool:
        """Whether the model came to its end."""
        return bool(self.finish_reason)


class Gathering:
    """Puts the chunks of a stream together."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self._calls: list[dict[str, str]] = []
        self._by_index: dict[int, dict[str, str]] = {}
        self._usage: dict[str, int] = {}
        self._finish = ""

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has arrived."""
        return bool(self.text or self._calls)

    def add(self, chunk: Any) -> str:
        """Take in one chunk; the text in it that can be shown."""
        if usage := getattr(chunk, "usage", None):
            names = ("prompt_tokens", "completion_tokens", "total_tokens")
            self._usage = {name: int(getattr(usage, name, 0) or 0) for name in names}
        if not getattr(chunk, "choices", None):
            return ""  # the one that only counts
        choice = chunk.choices[0]
        self._finish = choice.finish_reason or self._finish
        delta = choice.delta
        for piece in (getattr(delta, "tool_calls", None) or ()) if delta else ():
            self._add_call(piece)
        text = (delta.content or "") if delta else ""
        if text:
            self.text.append(text)
        return text

    def _add_call(self, piece: Any) -> None:
        """Servers differ: an index may be missing or be used again, and a call may come whole."""
        index = getattr(piece, "index", None)
        known = self._by_index.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if known is None or (piece.id and known["id"] and piece.id != known["id"]):
            known = {"id": "", "name": "", "arguments": ""}
            self._calls.append(known)
            if index is not None:
                self._by_index[index] = known
        known["id"] = known["id"] or piece.id or ""
        function = piece.function
        if function is not None:
            known["name"] += function.name or ""
            known["arguments"] += function.arguments or ""

    def answer(self) -> Answer:
        """What has arrived so far, as an answer. A call without an id is given one."""
        calls = tuple(
            ToolCall(call["id"] or f"call_{number}", call["name"], call["arguments"] or "{}")
            for number, call in enumerate(self._calls, 1)
        )
        return Answer("".join(self.text), calls, self._usage, self._finish)
