"""The block of a memory file in the system prompt."""

from __future__ import annotations

from collections.abc import Collection

from hermes.memory.builtin.entries import SEPARATOR, Document, shown
from hermes.memory.builtin.store import visible
from hermes.memory.builtin.values import Target, Usage
from hermes.memory.threats import first_threat_message

_RULE = "═" * 46
_TITLES = {"memory": "MEMORY (your own notes)", "user": "USER PROFILE (who the user is)"}


def block(target: Target, document: Document, usage: Usage) -> str:
    """What the model is given of *document*; empty where there is nothing to give."""
    texts = document.texts
    if not texts:
        return ""
    seen = visible(texts)
    body = SEPARATOR.join(map(_plain, seen))
    parts = [_headings(document), body, _hidden(texts, seen)]
    return "\n".join([_RULE, f"{_TITLES[target]} [{usage}]", _RULE, *(part for part in parts if part)])


def unreadable(target: Target, reason: str) -> str:
    """What the model is told where the file cannot be read."""
    return (
        f"{_RULE}\n{_TITLES[target]} [could not be read]\n{_RULE}\n"
        f"It is not empty. Tell the user that it could not be read: {reason}"
    )


def pending(count: int) -> str:
    """What the model is told of writes that wait for the person."""
    what = "1 memory write waits" if count == 1 else f"{count} memory writes wait"
    return f"({what} for the user's approval: hermes memory pending)"


def _headings(document: Document) -> str:
    headings = document.headings
    return "" if first_threat_message(headings) else _plain(headings)


def _hidden(texts: Collection[str], seen: Collection[str]) -> str:
    count = len(texts) - len(seen)
    if not count:
        return ""
    what = "1 entry is" if count == 1 else f"{count} entries are"
    return f"[BLOCKED: {what} not shown, being suspicious; the user sees it with: hermes memory list]"


def _plain(text: str) -> str:
    """No entry can draw a header of its own."""
    return shown(text).replace("═══", "===")
