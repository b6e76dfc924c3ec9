"""Payloads as text: what a record carries is written out at once and shares nothing with its maker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hermes.memory.journal.records import Entry, Kind

_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_ESCAPED = json.JSONEncoder(separators=(",", ":"), default=str).encode


class Row(NamedTuple):
    """An entry as it goes into the table."""

    provider: str
    session: str
    kind: str
    key: str
    time: float
    opens: str
    payload: str
    added: float


def to_row(entry: Entry, now: float) -> Row:
    """*entry* written out at *now* (Unix seconds).

    What cannot be JSON is told as its text, or dropped and named under ``dropped``.
    """
    opens = str(entry.payload.get("new_session_id") or "") if entry.kind is Kind.SESSION_SWITCH else ""
    return Row(
        storable(entry.provider),
        storable(entry.session_id),
        entry.kind.value,
        storable(entry.key),
        float(entry.time),
        storable(opens) if opens != entry.session_id else "",
        dump(entry.payload),
        now,
    )


def dump(payload: Mapping[str, Any]) -> str:
    """*payload* as JSON text."""
    try:
        return _as_json(payload)
    except (TypeError, ValueError, RecursionError):
        return _as_json(_what_can_be_written(payload))


def load(text: str) -> dict[str, Any]:
    """The payload that *text* was made from."""
    loaded = json.loads(text)
    return loaded if isinstance(loaded, dict) else {"value": loaded}


def spoken(payload: Mapping[str, Any]) -> list[dict[str, str]]:
    """A turn as messages: what was said, without anything that went with it."""
    said = (("user", payload.get("user")), ("assistant", payload.get("assistant")))
    return [
        {"role": role, "content": text if isinstance(text, str) else str(text)} for role, text in said if text
    ]


def compact(text: str) -> str:
    """The payload of a turn with nothing left but what was said."""
    payload = load(text)
    return dump({role: payload.get(role) for role in ("user", "assistant")})


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """*value* with *change* applied to every text in it, the keys of mappings included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): each_text(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [each_text(item, change) for item in value]
    return value


def digest(key: str) -> bytes:
    """A short fingerprint of an ingested key: the key itself may say too much to be kept."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def storable(text: str) -> str:
    """*text* as SQLite can keep it: half a character (from a stream that was cut) becomes a question mark."""
    text = text if isinstance(text, str) else str(text or "")
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def _as_json(payload: Mapping[str, Any]) -> str:
    text = _PLAIN(payload)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character, which only an escape can carry
            return _ESCAPED(payload)
    return text


def _what_can_be_written(payload: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    dropped: list[str] = []
    for key, value in payload.items():
        try:
            kept[str(key)] = json.loads(_as_json({"value": value}))["value"]
        except (TypeError, ValueError, RecursionError):
            dropped.append(str(key))
    return {**kept, "dropped": dropped}
