"""Reading conversations that were held elsewhere: OpenAI-style messages, in lines or as one document.

Understood: JSON Lines with one message a line (``conversation_id`` tells conversations apart) or one
conversation a line (``{"messages": […]}``), and one JSON document that is a list of messages, a conversation,
or a list of conversations.

A message is identified by its conversation (its id, else a hash of its first message), its position there and
its text: reading a file again finds the same identities, and a file that has grown finds new ones at its end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

import attrs

from hermes.memory.turns import flatten_content

_ID_KEYS = ("conversation_id", "session_id", "thread_id")
_TIME_KEYS = ("timestamp", "created_at", "time", "date")


@attrs.frozen
class Malformed:
    """A record that could not be used: where it stands and why."""

    where: str
    reason: str


@attrs.frozen
class Said:
    """One message of a conversation, with its identity."""

    conversation: str
    key: str
    role: str
    text: str
    time: float | None
    author: str | None
    message: Mapping[str, Any]


@attrs.frozen
class ReadTurn:
    """What a person said and what was answered to it: one or more messages of one conversation."""

    said: tuple[Said, ...]
    known: int = 0
    """How many of the messages were taken in before: they belong to the turn's identity, not to its text."""

    @property
    def key(self) -> str:
        """The identity of the turn, from those of all its messages."""
        return self.prefix_keys[-1]

    @property
    def prefix_keys(self) -> list[str]:
        """The identity that the turn had when only its first, first two, … messages were there."""
        keys = [m.key for m in self.said]
        return [_digest(*keys[: n + 1]) for n in range(len(keys))]

    @property
    def session_id(self) -> str:
        """The conversation."""
        return self.said[0].conversation

    @property
    def user(self) -> str:
        """What the person said."""
        return "\n\n".join(m.text for m in self._new if m.role == "user" and m.text)

    @property
    def assistant(self) -> str:
        """What was answered."""
        return "\n\n".join(m.text for m in self._new if m.role == "assistant" and m.text)

    @property
    def time(self) -> float | None:
        """When it was said, in Unix seconds; None if nothing tells."""
        return next((m.time for m in self._new if m.time is not None), None)

    @property
    def author(self) -> str | None:
        """The name the person goes by in the conversation."""
        return next((m.author for m in self._new if m.role == "user" and m.author), None)

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """The messages as they were read."""
        return [m.message for m in self._new]

    @property
    def _new(self) -> tuple[Said, ...]:
        return self.said[self.known :]


def read(stream: TextIO, name: str) -> Iterator[Said | Malformed]:
    """The messages of *stream*, in order, with what could not be used among them; *name* is for the person."""
    reader = _Conversations()
    for where, record in _records(stream, name):
        if isinstance(record, Malformed):
            yield record
        else:
            yield from reader.messages(where, record)


def turns(messages: Iterable[Said]) -> Iterator[ReadTurn]:
    """*messages*, in order, as turns: each begins with what the person said, ends before they speak again."""
    gathered: list[Said] = []
    for said in messages:
        starts = said.role == "user" and any(m.role != "user" for m in gathered)
        if gathered and (starts or said.conversation != gathered[0].conversation):
            yield ReadTurn(tuple(gathered))
            gathered = []
        gathered.append(said)
    if gathered:
        yield ReadTurn(tuple(gathered))


def _records(stream: TextIO, name: str) -> Iterator[tuple[str, Any]]:
    """Each line's value; where the first line alone is no JSON, the values of the whole document."""
    head, where = "", ""
    for number, line in enumerate(stream, 1):
        line = line.lstrip("\ufeff") if number == 1 else line
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            value = json.loads(line)
        except ValueError as exc:
            if not head and line.lstrip()[:1] in ("{", "["):
                yield from _document(line + stream.read(), name, where, exc)
                return
            yield where, Malformed(where, f"not JSON: {exc}")
        else:
            yield from _spread(where, value)
        head = where


def _document(text: str, name: str, where: str, line_error: ValueError) -> Iterator[tuple[str, Any]]:
    try:
        value = json.loads(text)
    except ValueError as exc:
        # lines, the first of them broken, or a document that is broken or cut off
        lines = text.splitlines()
        if len(lines) > 1 and _is_json(lines[1]):
            yield where, Malformed(where, f"not JSON: {line_error}")
            first = int(where.rpartition(":")[2])
            for number, line in enumerate(lines[1:], first + 1):
                at = f"{name}:{number}"
                if line.strip():
                    yield from (
                        _spread(at, json.loads(line)) if _is_json(line) else [(at, Malformed(at, "not JSON"))]
                    )
        else:
            yield where, Malformed(name, f"not JSON: {exc}")
    else:
        yield from _spread(name, value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _spread(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """One record per message or conversation; a list of messages is one conversation."""
    if not isinstance(value, list):
        yield where, value
    elif any(isinstance(item, Mapping) and "role" in item for item in value):
        yield where, {"messages": value}
    else:
        for number, item in enumerate(value, 1):
            yield f"{where}[{number}]", item


class _Conversations:
    """Numbers the messages of each conversation as they come."""

    def __init__(self) -> None:
        self._ids: dict[str | None, str] = {}
        self._positions: dict[str, int] = {}

    def messages(self, where: str, record: Any) -> Iterator[Said | Malformed]:
        if not isinstance(record, Mapping):
            yield Malformed(where, f"expected an object, found {type(record).__name__}")
        elif isinstance(record.get("messages"), list):
            given = next((str(record[k]) for k in ("id", *_ID_KEYS) if record.get(k)), None)
            conversation = given
            for number, item in enumerate(record["messages"], 1):
                said = self._said(f"{where} message {number}", item, conversation or _first(item))
                conversation = conversation or (said.conversation if isinstance(said, Said) else None)
                if said is not None:
                    yield said
        elif "role" in record:
            given = next((str(record[k]) for k in _ID_KEYS if record.get(k)), None)
            said = self._said(where, record, given or self._ids.setdefault(None, _first(record)))
            if said is not None:
                yield said
        else:
            yield Malformed(where, "neither a message with a role nor a conversation with messages")

    def _said(self, where: str, item: Any, conversation: str) -> Said | Malformed | None:
        if not isinstance(item, Mapping):
            return Malformed(where, f"expected a message, found {type(item).__name__}")
        role, content = item.get("role"), item.get("content")
        if role in ("system", "developer"):
            return None
        if role not in ("user", "assistant", "tool", "function"):
            return Malformed(where, f"unknown role {role!r}")
        if content is not None and not isinstance(content, str | list):
            return Malformed(where, f"content is {type(content).__name__}, expected text or a list of parts")
        text = flatten_content(content)
        position = self._positions[conversation] = self._positions.get(conversation, 0) + 1
        author = item.get("name")
        return Said(
            conversation=conversation,
            key=_digest(conversation, str(position), str(role), text),
            role=str(role),
            text=text,
            time=_time(item),
            author=author if isinstance(author, str) else None,
            message={k: v for k, v in item.items() if k not in (*_ID_KEYS, *_TIME_KEYS)},
        )


def _first(item: Any) -> str:
    return "conversation-" + _digest(json.dumps(item, sort_keys=True, default=str))[:16]


def _time(item: Mapping[str, Any]) -> float | None:
    """When it was said, in Unix seconds; a time without a zone counts as UTC."""
    value = next((item[key] for key in _TIME_KEYS if item.get(key) is not None), None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) / (1000.0 if value > 1e11 else 1.0)  # milliseconds, as JavaScript writes them
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
