"""The tools that local memory offers to a model."""

from __future__ import annotations

from typing import Any

from hermes.errors import UsageError

SEARCH, LIST, FORGET = "local_search", "local_list", "local_forget"
DEFAULT_LIMIT, MAX_LIMIT = 8, 50
MAX_IDS = 100

SCHEMAS: tuple[dict[str, Any], ...] = (
    {
        "name": SEARCH,
        "description": (
            "Search everything said in earlier conversations, word for word. Use it when the user refers to"
            " something from before, or asks what they told you. Give the telling words: names, identifiers,"
            " topics, dates."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "A question or words to look for, in any language.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": DEFAULT_LIMIT,
                    "description": "How many results at most.",
                },
            },
            "required": ["query"],
        },
    },
    {
        "name": LIST,
        "description": "List what was said last, newest first, of one session or of all.",
        "parameters": {
            "type": "object",
            "properties": {
                "session": {"type": "string", "description": "Only this session, as search results name it."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": 20,
                    "description": "How many at most.",
                },
            },
        },
    },
    {
        "name": FORGET,
        "description": (
            "Delete stored messages for good, by the ids that local_search or local_list gave. It cannot be"
            " undone: only when the user asks for it, after showing them what goes."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "ids": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "minItems": 1,
                    "maxItems": MAX_IDS,
                    "description": "Ids of the messages to delete.",
                },
            },
            "required": ["ids"],
        },
    },
)


def text_of(args: dict[str, Any], name: str, *, required: bool = False) -> str:
    """The text argument *name*. Raises UsageError."""
    value = args.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise UsageError(f"{name} must be a text" + (" that is not empty" if required else ""))
    return value


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
