"""A turn as it is handed over: plain text and JSON, without fences and scaffolding, sharing nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from hermes.memory.fences import sanitize_context

_DEEPEST = 64
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image"})

_SKILL_HEADER = re.compile(
    r"\s*\[[A-Z]+:? ?The user has invoked the [\"“'`](?P<name>[^\"”'`\n]+)[\"”'`] skill\b"
)
_SKILL_WORDS = re.compile(
    r"The user has provided the following instructions? alongside the skill (?:command|invocation):\s*"
)
_SKILL_NOTE = re.compile(r"\n\s*\[Runtime note:.*?\]\s*\Z", re.DOTALL)
_SKILL_ELEMENT = re.compile(
    r"\s*<skill\s+name=[\"']([^\"'\n]+)[\"'][^>]*>.*?</skill>\s*", re.DOTALL | re.IGNORECASE
)


def flatten_content(content: Any) -> str:
    """The text of a message: its text parts, one per line; ``[image]`` and the like for other parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list | tuple):
        return "" if content is None else str(content)
    return "\n".join(part for part in map(_part, content) if part)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return "" if part is None else str(part)
    kind = part.get("type")
    for key in ("text", "input_text", "output_text", "content", "refusal"):
        if isinstance(text := part.get(key), str):
            return text
    if kind in _IMAGE_TYPES:
        return "[image]"
    return f"[{kind}]" if isinstance(kind, str) and kind else ""


def own_words(text: str) -> str:
    """What the person wrote, where a host has expanded ``/skill words`` into the skill's instructions.

    Two forms of expansion are known. A message may begin with ``[IMPORTANT: The user has invoked the "name"
    skill …]``, the person's words standing after "The user has provided the following instruction alongside
    the skill command:". Or it begins with ``<skill name="name">…</skill>`` and the words follow. A skill
    that was invoked without words leaves ``/name``.
    """
    if not text.lstrip().startswith(("[", "<")):
        return text
    if header := _SKILL_HEADER.match(text):
        marks = list(_SKILL_WORDS.finditer(text))
        words = _SKILL_NOTE.sub("", text[marks[-1].end() :]).strip() if marks else ""
        return words or f"/{header['name']}"
    names = []
    while element := _SKILL_ELEMENT.match(text):
        names.append(element[1])
        text = text[element.end() :]
    return text.strip() or " ".join(f"/{name}" for name in names) if names else text


def clean_text(content: Any) -> str:
    """One side of a turn: flattened, reduced to the person's own words, without recall."""
    return sanitize_context(own_words(flatten_content(content))).strip()


def plain(value: Any, text: Callable[[str], str] = str, deeper: int = _DEEPEST) -> Any:
    """*value* rebuilt from plain JSON types, every text passed through *text*; what is no JSON becomes text.

    Bytes become their size, so that an image never fills a store.
    """
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool | int | float):
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value
    if deeper == 0:
        return "…"
    if isinstance(value, Mapping):
        return {k if isinstance(k, str) else str(k): plain(v, text, deeper - 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, text, deeper - 1) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    return text(str(value))


def clean_messages(messages: Any) -> list[dict[str, Any]]:
    """Messages as they are handed over: copies, without recall, the person's reduced to their own words."""
    if not isinstance(messages, list | tuple):
        return []
    return [_message(message) for message in messages if isinstance(message, Mapping)]


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = plain(message, without_fences)
    if message.get("role") == "user" and isinstance(copied.get("content"), str):
        copied["content"] = own_words(copied["content"])
    return copied


def without_fences(text: str) -> str:
    """*text* without recall; an image that was written into it is only named."""
    if text.startswith("data:") and len(text) > 1000:
        return f"{text[:40]}… [{len(text)} characters]"
    return sanitize_context(text)


def scrubbed(value: Any) -> Any:
    """*value*, made of dicts and lists, without recall in any of its texts."""
    if isinstance(value, str):
        return sanitize_context(value)
    if isinstance(value, dict):
        return {key: scrubbed(item) for key, item in value.items()}
    return [scrubbed(item) for item in value] if isinstance(value, list | tuple) else value


def detached(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A copy of *value* as far as it is made of dicts, lists, sets and tuples; other objects stay."""
    if not isinstance(value, dict | list | set | tuple):
        return value
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, dict):
        copied: Any = {}
        memo[id(value)] = copied
        copied.update((key, detached(item, memo)) for key, item in value.items())
    elif isinstance(value, list):
        copied = memo[id(value)] = []
        copied.extend(detached(item, memo) for item in value)
    elif isinstance(value, set):
        copied = set(value)
    else:
        items = [detached(item, memo) for item in value]
        copied = type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return copied
