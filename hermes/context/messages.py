"""Lists of messages that a model accepts: how long they are, where they may be cut, whether they are whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hermes.memory.turns import flatten_content

Message = dict[str, Any]

PER_MESSAGE = 4
"""Tokens that the frame of one message takes."""


def estimated_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens *messages* are, where no model has counted them.

    A quarter of the ASCII characters and one for each other: what the tokenizers in use come near to.
    """
    return sum(PER_MESSAGE + _tokens(message) for message in messages)


def _tokens(message: Message) -> int:
    text = flatten_content(message.get("content"))
    if calls := message.get("tool_calls"):
        text += json.dumps(calls, ensure_ascii=False, default=str)
    ascii_part = len(text.encode("ascii", "ignore"))
    return ascii_part // 4 + len(text) - ascii_part


def groups(messages: Sequence[Message]) -> list[list[Message]]:
    """*messages* in pieces that must stay together: a call of tools and the results that belong to it."""
    found: list[list[Message]] = []
    for message in messages:
        if message.get("role") == "tool" and found and found[-1][0].get("tool_calls"):
            found[-1].append(message)
        else:
            found.append([message])
    return found


def fault_of(messages: object) -> str:
    """Why *messages* cannot be sent to a model; empty if they can.

    Each tool call needs its result right behind it, each result its call, and something the person said
    must be there.
    """
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return "it is no list of messages"
    owed: set[str] = set()
    for number, message in enumerate(messages, 1):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in owed:
                return f"message {number} is the result of a tool call that is not there"
            owed.discard(str(message["tool_call_id"]))
            continue
        if owed:
            return f"message {number} stands where the result of a tool call is missing"
        if role not in ("system", "developer", "user", "assistant"):
            return f"message {number} has the role {role!r}"
        owed = {str(call.get("id")) for call in message.get("tool_calls") or ()}
    if owed:
        return "the result of the last tool call is missing"
    if not any(message.get("role") == "user" for message in messages):
        return "nothing that the person said is left"
    return ""
