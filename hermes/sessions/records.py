"""What a transcript is made of."""

from __future__ import annotations

from typing import Any, Literal

import attrs

State = Literal["open", "done", "interrupted", "failed", "undone"]
"""How the turn of a message stands: still going on, complete, cut off by the person, without an answer
because the model could not be reached, taken back."""


@attrs.frozen
class Session:
    """One conversation. Times are Unix seconds."""

    id: str
    title: str
    parent: str
    """The session that it was branched from, or that it took over from when the context was compressed."""
    started: float
    updated: float
    ended: float | None
    end_reason: str
    turns: int
    """Complete ones."""


@attrs.frozen
class StoredMessage:
    """One message of a transcript, as it was said: without recalled text."""

    session_id: str
    turn: int
    """Number of the turn in its session, from 1."""
    message: dict[str, Any] = attrs.field(repr=False)
    """OpenAI-style: role, content, tool_calls, tool_call_id."""
    time: float
    state: State
