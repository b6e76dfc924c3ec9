"""What the model is given: the frozen system prompt, and the person's words with what was recalled for them."""

from __future__ import annotations

import time
from typing import Any

Message = dict[str, Any]

BASE = (
    "You are a helpful assistant. You remember this person across conversations: what follows, and the "
    "background that comes with a message, is your memory. Use it where it helps, and say so when you are "
    "not sure. Today is {date}."
)


def system_prompt(memory_blocks: str, *, now: float, extra: str = "") -> Message:
    """The system message of a session. It stays as it is until the context is compressed or a new one begins."""
    parts = [BASE.format(date=time.strftime("%A, %d %B %Y", time.localtime(now))), memory_blocks, extra]
    return {"role": "system", "content": "\n\n".join(part for part in parts if part.strip())}


def with_recall(message: Message, *blocks: str) -> Message:
    """A copy of the person's *message* with *blocks* behind it; the message itself is never changed."""
    added = "\n\n".join(block for block in blocks if block.strip())
    if not added:
        return message
    said = message.get("content")
    if isinstance(said, list):
        return {**message, "content": [*said, {"type": "text", "text": added}]}
    return {**message, "content": f"{said}\n\n{added}"}
