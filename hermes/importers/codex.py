"""Rollouts of Codex: JSON lines in an envelope of ``type`` and ``payload``; the oldest ones without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from hermes.importers.common import Found, lines, moment, said, texts
from hermes.memory.conversations import Malformed

SOURCE = "codex"
_NOT_WORDS = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<permissions",
    "<skills",
    "<turn_aborted>",
)


def read(file: IO[bytes], name: str) -> Iterator[Found]:
    """The messages of the rollout. Its events repeat them, and are left out."""
    conversation = ""
    for number, (where, line) in enumerate(lines(file, name)):
        if isinstance(line, Malformed):
            yield line
            continue
        kind, payload = line.get("type"), line.get("payload")
        if not isinstance(payload, dict):  # without an envelope
            kind, payload = "response_item", line
            conversation = conversation or str(line.get("id") or "")
        if kind == "session_meta":
            conversation = str(payload.get("id") or payload.get("session_id") or conversation)
        elif kind == "response_item" and payload.get("type") == "message":
            yield from _said(where, payload, conversation or name, line.get("ordinal", number), line)


def _said(
    where: str, payload: dict[str, Any], conversation: str, place: Any, line: dict[str, Any]
) -> Iterator[Found]:
    role, content = payload.get("role"), payload.get("content")
    if role not in ("user", "assistant"):
        return
    if not isinstance(content, str | list):
        yield Malformed(where, "a message without content")
        return
    text = texts(content)
    if text.strip() and not (role == "user" and text.lstrip().startswith(_NOT_WORDS)):
        yield said(SOURCE, conversation, f"{place}", role, text, moment(line.get("timestamp")))
