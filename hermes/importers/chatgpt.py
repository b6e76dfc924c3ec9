"""The export of ChatGPT: an array of conversations, each a tree of messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from hermes.importers.common import Found, elements, moment, said
from hermes.memory.conversations import Malformed

SOURCE = "chatgpt"


def read(file: IO[bytes], name: str) -> Iterator[Found]:
    """What the person sees of each conversation: the branch that is shown, words only."""
    for where, record in elements(file, name, "item"):
        if isinstance(record, Malformed):
            yield record
        elif not isinstance(record, Mapping) or not isinstance(record.get("mapping"), Mapping):
            yield Malformed(where, "no conversation: it has no mapping")
        else:
            yield from conversation(where, record)


def conversation(where: str, record: Mapping[str, Any]) -> Iterator[Found]:
    """The messages of one conversation, from its first to the one that it stands at."""
    identity = str(record.get("conversation_id") or record.get("id") or where)
    for node in _branch(record["mapping"], record.get("current_node")):
        message = node.get("message")
        if message is None:
            continue
        if not isinstance(message, Mapping) or not isinstance(message.get("author"), Mapping):
            yield Malformed(where, f"message {str(node.get('id'))[:60]!r} has no author")
            continue
        role, text = message["author"].get("role"), _text(message)
        if role in ("user", "assistant") and text.strip():
            own = str(message.get("id") or node.get("id") or "")
            when = moment(message.get("create_time")) or moment(record.get("create_time"))
            yield said(SOURCE, identity, own, role, text, when)


def _branch(nodes: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """From the first message to *current*, or to the newest that nothing follows. Cycles end where they begin."""
    if not isinstance(current, str) or current not in nodes:
        leaves = [
            key for key, node in nodes.items() if isinstance(node, Mapping) and not node.get("children")
        ]
        current = max(leaves, key=lambda key: _time(nodes[key]), default=None)
    found, seen = [], set()
    while isinstance(current, str) and current in nodes and current not in seen:
        seen.add(current)
        node = nodes[current]
        if not isinstance(node, Mapping):
            break
        found.append(node)
        current = node.get("parent")
    return found[::-1]


def _time(node: Mapping[str, Any]) -> float:
    message = node.get("message")
    return (moment(message.get("create_time")) if isinstance(message, Mapping) else None) or 0.0


def _text(message: Mapping[str, Any]) -> str:
    """The words in *message*; none for what is hidden, sent to a tool, or no words at all."""
    metadata = message.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation"):
        return ""
    content = message.get("content")
    if message.get("weight") == 0 or message.get("recipient") not in ("all", None):
        return ""
    if not isinstance(content, Mapping) or content.get("content_type") not in ("text", "multimodal_text"):
        return ""
    parts = content.get("parts")
    found = []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping) and part.get("content_type") == "audio_transcription":
            found.append(str(part.get("text") or ""))
        elif isinstance(part, str):
            found.append(part)
    return "\n\n".join(text for text in found if text.strip())
