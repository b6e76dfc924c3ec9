"""Records as text for a model: dated, with who said it, short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hermes.plugins.memory.local.records import OWNER, Fact, Record, Role

ITEM_LENGTH = 420
"""Characters of one recalled item."""
TOTAL_LENGTH = 3_000
"""Characters of everything recalled for one question."""
PINNED_LENGTH = 200
"""Characters of one pinned fact, which is there whatever is asked."""
_SPACE = re.compile(r"\s+")


def recalled(records: Iterable[Record], asked: str, pinned: Iterable[Fact] = ()) -> tuple[str, int]:
    """What a model is given before it answers, and how many items it holds; empty for none."""
    found = [
        f"- {day(fact.created)} remembered: {clipped(fact.text, asked, PINNED_LENGTH)}" for fact in pinned
    ]
    found += [f"- {day(record.time)} {speaker(record)}: {clipped(record.text, asked)}" for record in records]
    lines: list[str] = []
    room = TOTAL_LENGTH
    for line in found:
        if len(line) > room:
            break
        room -= len(line) + 1
        lines.append(line)
    block = "From earlier conversations, most relevant first:\n" + "\n".join(lines) if lines else ""
    return block, len(lines)


def day(time: float) -> str:
    """The local date of *time*."""
    try:
        return datetime.fromtimestamp(time).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        return "undated"


def speaker(record: Record) -> str:
    """Who said it, or where it was noted."""
    if record.role is Role.FACT:
        return f"remembered of {record.author}" if record.author else "remembered"
    if record.role is Role.NOTE:
        return "noted about the user" if record.target == "user" else "noted"
    return record.author or record.role.label


def clipped(said: str, asked: str, length: int = ITEM_LENGTH) -> str:
    """*said* on one line; of a long text the part that has most to do with *asked*."""
    said = _SPACE.sub(" ", said).strip()
    if len(said) <= length:
        return said
    wanted = {word for word in re.findall(r"\w{2,}", asked.lower()) if len(word) > 3 or not word.isascii()}
    low = said.lower()
    starts = range(0, len(said) - length // 2, length // 3)
    best = max(starts, key=lambda i: (sum(word in low[i : i + length] for word in wanted), -i))
    piece = said[best : best + length].strip()
    return ("… " if best else "") + piece + (" …" if best + length < len(said) else "")


def as_dict(record: Record) -> dict[str, Any]:
    """*record* as a JSON-able mapping, for export and for the person's commands."""
    found: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "time": record.time,
        "session_id": record.session_id,
        "role": record.role.label,
    }
    if record.author:
        found["author"] = record.author
    if record.role is Role.NOTE:
        found["target"] = record.target
    if record.scope != OWNER:
        found["scope"] = record.scope
    return found


def for_tool(record: Record, asked: str = "") -> Mapping[str, Any]:
    """*record* as a tool shows it to the model."""
    shown: dict[str, Any] = {
        "id": record.id,
        "date": day(record.time),
        "who": speaker(record),
        "text": clipped(record.text, asked, 2 * ITEM_LENGTH),
    }
    if record.session_id:
        shown["session"] = record.session_id
    if record.role is Role.FACT:
        shown["fact"] = True
    return shown


def fact_for_tool(fact: Fact) -> dict[str, Any]:
    """*fact* as a tool shows it to the model."""
    shown: dict[str, Any] = {"id": fact.id, "date": day(fact.created), "text": fact.text, "fact": True}
    if fact.pinned:
        shown["pinned"] = True
    if fact.expires:
        shown["expires"] = day(fact.expires)
    if fact.source.session_id:
        shown["session"] = fact.source.session_id
    return shown


def fact_as_dict(fact: Fact) -> dict[str, Any]:
    """*fact* as a JSON-able mapping; what is not known or not so is left out."""
    source = fact.source
    more = {
        "session_id": source.session_id,
        "turn": source.turn,
        "message": source.message,
        "tool": source.tool,
        "person": source.person,
        "used": fact.used,
        "uses": fact.uses,
        "pinned": fact.pinned,
        "expires": fact.expires,
        "ended": fact.ended,
        "successor": fact.successor,
        "scope": "" if fact.scope == OWNER else fact.scope,
    }
    known = {key: value for key, value in more.items() if value}
    return {"id": fact.id, "role": Role.FACT.label, "text": fact.text, "time": fact.created, **known}
