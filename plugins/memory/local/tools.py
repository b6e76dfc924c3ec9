"""The tools that local memory offers to a model: what they are called, what they take, what they answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hermes import amounts
from hermes.errors import EntryNotFound, UsageError
from hermes.plugins.memory.local import render
from hermes.plugins.memory.local.memory import Memory
from hermes.plugins.memory.local.records import Role, Source

SEARCH, LIST, FORGET = "local_search", "local_list", "local_forget"
REMEMBER, UPDATE = "local_remember", "local_update"
DEFAULT_LIMIT, MAX_LIMIT = 8, 50
MAX_IDS = 100
MAX_FACT = 2_000
"""Characters of one fact."""

_LIMIT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_LIMIT,
    "default": DEFAULT_LIMIT,
    "description": "How many results at most.",
}
_EXPIRES = {
    "type": "string",
    "description": "When it stops to be true: a date such as 2027-03-01, a span such as 30d, or never.",
}
_PINNED = {
    "type": "boolean",
    "description": "True: always shown, for the few things that matter in every conversation.",
}


def _tool(name: str, description: str, required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    return {"name": name, "description": description, "parameters": parameters}


READING: tuple[dict[str, Any], ...] = (
    _tool(
        SEARCH,
        "Search everything said in earlier conversations, word for word, and the facts that were remembered."
        " Use it when the user refers to something from before, or asks what they told you. Give the telling"
        " words: names, identifiers, topics, dates.",
        ["query"],
        query={"type": "string", "description": "A question or words to look for, in any language."},
        limit=_LIMIT,
    ),
    _tool(
        LIST,
        "List what was said or remembered last, newest first, of one session or of all.",
        [],
        session={"type": "string", "description": "Only this session, as search results name it."},
        facts={"type": "boolean", "description": "True: only the facts that were remembered."},
        limit=_LIMIT | {"default": 20},
    ),
)
WRITING: tuple[dict[str, Any], ...] = (
    _tool(
        REMEMBER,
        "Remember one fact in a sentence that stands for itself: who, what, since when. Conversations are"
        " stored anyway; use it for what the user asks you to remember, or what will matter again. Something"
        " that has changed is corrected with local_update.",
        ["text"],
        text={"type": "string", "description": f"The fact, {MAX_FACT} characters at most."},
        pinned=_PINNED,
        expires=_EXPIRES,
    ),
    _tool(
        UPDATE,
        "Change a remembered fact: its text, whether it is pinned, when it expires. The former text is not"
        " found any more.",
        ["id"],
        id={"type": "integer", "description": "The id of the fact, as local_search or local_list gave it."},
        text={"type": "string", "description": "What is true now; leave it out to keep the text."},
        pinned=_PINNED,
        expires=_EXPIRES,
    ),
    _tool(
        FORGET,
        "Delete stored messages and facts for good, by the ids that local_search or local_list gave. It cannot"
        " be undone: only when the user asks for it, after showing them what goes. What says"
        " much the same and is left is in the answer.",
        ["ids"],
        ids={
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 1,
            "maxItems": MAX_IDS,
            "description": "Ids of the messages and facts to delete.",
        },
    ),
)


def search(memory: Memory, args: dict[str, Any], _: Source) -> dict[str, Any]:
    """What matches; that facts were given to a model is noted."""
    query = text_of(args, "query", required=True)
    records = [hit.record for hit in memory.recall(query, limit_of(args, DEFAULT_LIMIT))]
    memory.used(record.id for record in records if record.role is Role.FACT)
    return {"results": [render.for_tool(record, query) for record in records]}


def listing(memory: Memory, args: dict[str, Any], _: Source) -> dict[str, Any]:
    """What was said or remembered last."""
    limit, session = limit_of(args, 20), text_of(args, "session")
    if flag_of(args, "facts"):
        facts = memory.store.facts(memory.scopes)
        chosen = [fact for fact in facts if not session or fact.source.session_id == session]
        return {"results": [render.fact_for_tool(fact) for fact in chosen[:limit]]}
    found = [
        record
        for scope in memory.scopes
        for record in memory.store.listing(scope, session_id=session, limit=limit)
    ]
    found.sort(key=lambda record: -record.time)
    return {"results": [render.for_tool(record) for record in found[:limit]]}


def remember(memory: Memory, args: dict[str, Any], source: Source) -> dict[str, Any]:
    """The fact, whether it is new, and facts that it may contradict."""
    said, now = fact_of(args, required=True), memory.clock()
    fact, new = memory.remember(
        said, source, expires=expiry_of(args, now) or None, pinned=bool(flag_of(args, "pinned"))
    )
    reply: dict[str, Any] = {"remembered": render.fact_for_tool(fact), "new": new}
    alike = [other for other in memory.similar(said, [fact.id]) if other.role is Role.FACT] if new else []
    if alike:
        reply["similar"] = [render.for_tool(other) for other in alike]
        reply["next_step"] = (
            "if one of these is not true any more, forget it, or correct it with local_update"
        )
    return reply


def update(memory: Memory, args: dict[str, Any], source: Source) -> dict[str, Any]:
    """The fact as it is now."""
    (wanted,), said = ids_of({"ids": args.get("id")}), fact_of(args)
    pinned, expires = flag_of(args, "pinned"), expiry_of(args, memory.clock())
    if not said and pinned is None and expires is None:
        raise UsageError("say what is to change: text, pinned or expires")
    fact = memory.correct(wanted, said, source) if said else None
    if pinned is not None or expires is not None:
        fact = memory.store.mark(fact.id if fact else wanted, memory.scopes, pinned=pinned, expires=expires)
    assert fact is not None
    return {"updated": render.fact_for_tool(fact)}


def forget(memory: Memory, args: dict[str, Any], _: Source) -> dict[str, Any]:
    """How many went, and what is left that says much the same."""
    ids = ids_of(args)
    meant = [record.text for record in memory.store.records(ids) if record.scope in memory.scopes]
    reply: dict[str, Any] = {"forgotten": memory.forget(ids), "asked": len(ids)}
    left = {record.id: record for text in meant for record in memory.similar(text)}
    if left:
        reply["left"] = [render.for_tool(record) for record in left.values()]
        reply["next_step"] = "these say much the same: forget them too, if the user means them as well"
    return reply


CALLS: Mapping[str, Callable[[Memory, dict[str, Any], Source], dict[str, Any]]] = {
    SEARCH: search,
    LIST: listing,
    REMEMBER: remember,
    UPDATE: update,
    FORGET: forget,
}


def refusal(exc: Exception) -> dict[str, Any]:
    """An error as the model reads it."""
    reply = {"error": getattr(exc, "message", str(exc)), "next_step": getattr(exc, "next_step", "")}
    if isinstance(exc, EntryNotFound) and exc.current:
        reply["current"] = exc.current
    return reply


# -- arguments ----------------------------------------------------------------------------------------------


def text_of(args: dict[str, Any], name: str, *, required: bool = False) -> str:
    """The text argument *name*. Raises UsageError."""
    value = args.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise UsageError(f"{name} must be a text" + (" that is not empty" if required else ""))
    return value


def fact_of(args: dict[str, Any], *, required: bool = False) -> str:
    """The argument ``text`` as a fact. Raises UsageError."""
    said = text_of(args, "text", required=required).strip()
    if len(said) > MAX_FACT:
        raise UsageError(
            f"a fact has at most {MAX_FACT} characters, this has {len(said)}",
            next_step="say it shorter, or as several facts",
        )
    return said


def flag_of(args: dict[str, Any], name: str) -> bool | None:
    """The argument *name*, true or false; None if it is not given. Raises UsageError."""
    value = args.get(name)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        value = value.strip().lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false")
    return value


def expiry_of(args: dict[str, Any], now: float) -> float | None:
    """The argument ``expires`` in Unix seconds, 0 for never, None if it is not given. Raises UsageError."""
    said = text_of(args, "expires").strip()
    if not said:
        return None
    return 0.0 if said.lower() == "never" else moment(said, now, "expires")


def moment(said: str, now: float, name: str, *, past: bool = False) -> float:
    """The time that *said* names: a date, or a span from *now* on, with *past* back from it.

    Raises UsageError, also for a time on the wrong side of *now*.
    """
    span = amounts.seconds(said)
    try:
        time = now + (-span if past else span) if span else datetime.fromisoformat(said).timestamp()
    except (ValueError, OverflowError, OSError):
        time = math.nan
    if not math.isfinite(time):
        raise UsageError(f"{name} must be a date such as 2027-03-01 or a span such as 30d, not {said!r}")
    if time > now if past else time <= now:
        raise UsageError(f"{name}: {said} lies in the {'future' if past else 'past'}")
    return time


def limit_of(args: dict[str, Any], default: int) -> int:
    """The argument ``limit``, brought into bounds. Raises UsageError."""
    value = args.get("limit")
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError("limit must be a whole number")
    try:
        return max(1, min(MAX_LIMIT, int(value)))
    except (ValueError, OverflowError):
        raise UsageError("limit must be a whole number") from None


def ids_of(args: dict[str, Any]) -> list[int]:
    """The argument ``ids``: whole numbers, at least one. Raises UsageError."""
    value = args.get("ids")
    given = value if isinstance(value, list) else [value]
    ids = []
    for item in given:
        if isinstance(item, str) and item.isascii() and item.isdigit():
            item = int(item)
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < 1 << 62:
            raise UsageError("ids must be a list of ids that local_search or local_list gave")
        ids.append(item)
    if not 1 <= len(ids) <= MAX_IDS:
        raise UsageError(f"ids must hold 1 to {MAX_IDS} ids")
    return ids
