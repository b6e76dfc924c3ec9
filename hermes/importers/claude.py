"""The export of Claude: an array of conversations with ``chat_messages``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from hermes.importers.common import Found, elements, moment, said, texts
from hermes.memory.conversations import Malformed

SOURCE = "claude"
_ROLES = {"human": "user", "assistant": "assistant"}


def read(file: IO[bytes], name: str) -> Iterator[Found]:
    """The messages of each conversation, with the text of what was attached to them."""
    for where, record in elements(file, name, "item"):
        if isinstance(record, Malformed):
            yield record
        elif not isinstance(record, Mapping) or not isinstance(record.get("chat_messages"), list):
            yield Malformed(where, "no conversation: it has no chat_messages")
        else:
            yield from conversation(where, record)


def conversation(where: str, record: Mapping[str, Any]) -> Iterator[Found]:
    """The messages of one conversation."""
    identity = str(record.get("uuid") or where)
    for number, message in enumerate(record["chat_messages"], 1):
        place = f"{where} message {number}"
        if not isinstance(message, Mapping):
            yield Malformed(place, f"expected a message, found {type(message).__name__}")
            continue
        role = _ROLES.get(str(message.get("sender")))
        if role is None:
            yield Malformed(place, f"unknown sender {message.get('sender')!r}")
            continue
        text = texts(message.get("content")) or str(message.get("text") or "")
        whole = "\n\n".join(part for part in (text, *_attached(message)) if part.strip())
        if whole:
            own = str(message.get("uuid") or "")
            yield said(SOURCE, identity, own, role, whole, moment(message.get("created_at")))


def _attached(message: Mapping[str, Any]) -> Iterator[str]:
    attachments = message.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else ():
        if isinstance(attachment, Mapping) and isinstance(attachment.get("extracted_content"), str):
            yield f"[{attachment.get('file_name') or 'attachment'}]\n{attachment['extracted_content']}"
