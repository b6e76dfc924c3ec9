"""What the ``memory`` tool answers: bounded JSON, final on success, entries to choose from on failure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hermes.errors import HermesError
from hermes.memory.builtin.approval import Pending
from hermes.memory.builtin.entries import Document, shown
from hermes.memory.builtin.guard import MAX_FAILURES
from hermes.memory.builtin.store import Applied, visible
from hermes.memory.builtin.values import NEARLY_FULL, Target, Usage, entry_id

_LINE = 160
_MAX_ENTRIES = 60
_MAX_TEXT = 4000
_MAX_READ = 16_000

_DONE = {
    "added": "Saved.",
    "replaced": "Saved: the whole entry was replaced; previous_content is what it said.",
    "removed": "Removed.",
    "duplicate": "It was there already; nothing had to be saved.",
    "unchanged": "The entry says that already; nothing had to be saved.",
}
_LEAVE_IT = "Leave it for now: it is not saved. Make no more memory calls in this turn and answer the user."


def written(done: Applied, usage: Usage) -> str:
    """The write is on disk."""
    statuses = list(dict.fromkeys(result.status for result in done.results))
    said = _DONE[statuses[0]] if len(statuses) == 1 else "All operations were carried out."
    bound = max(_MAX_TEXT, usage.limit)
    results: list[dict[str, Any]] = []
    for result in done.results:
        results.append({"action": result.operation.action, "status": result.status})
        if result.previous and result.status != "unchanged":
            results[-1]["previous_content"] = _cut(shown(result.previous), bound)
    reply: dict[str, Any] = {
        "success": True,
        "done": True,
        "target": done.target,
        "message": f"{said} This is final: do not repeat it.",
        "results": results,
        **_state(done.target, done.document, usage),
    }
    if warning := " ".join(part for part in (_nearly_full(usage), done.warning) if part):
        reply["warning"] = warning
    return _json(reply)


def staged(item: Pending, usage: Usage) -> str:
    """The write waits for the person."""
    return _json(
        {
            "success": True,
            "staged": True,
            "done": True,
            "id": item.id,
            "target": item.target,
            "message": "It waits for the user's approval and is not saved yet. Do not repeat it.",
            "usage": str(usage),
        }
    )


def read(target: Target, document: Document, usage: Usage, waiting: int) -> str:
    """Everything that is saved now."""
    reply: dict[str, Any] = {"success": True, "target": target, **_state(target, document, usage, whole=True)}
    if waiting:
        reply["waiting_for_approval"] = waiting
    return _json(reply)


def failed(
    exc: HermesError, failures: int, target: Target | None = None, document: Document | None = None,
    usage: Usage | None = None,
) -> str:  # fmt: skip
    """Nothing was written. After a few failures in a turn the answer is short and final."""
    if failures > MAX_FAILURES:
        return _json(
            {"success": False, "final": True, "error": f"Not saved: {_cut(exc.message, 300)}. {_LEAVE_IT}"}
        )
    reply: dict[str, Any] = {"success": False, "error": _cut(exc.message, 600), "next_step": exc.next_step}
    if current := getattr(exc, "current", ""):
        reply |= {"conflict": True, "current": _cut(current, _MAX_TEXT)}
        reply["next_step"] = (
            "the entry was changed meanwhile and now says what current holds: start from that"
        )
    if target is not None:
        reply["target"] = target
    if failures == MAX_FAILURES:
        reply |= {"final": True, "next_step": _LEAVE_IT}
    elif target is not None and document is not None and usage is not None:
        reply |= _state(target, document, usage, only=getattr(exc, "entries", ()))
    return _json(reply)


def _state(
    target: Target, document: Document, usage: Usage, *, whole: bool = False, only: Sequence[str] = ()
) -> dict[str, Any]:
    """The entries that the model may see, cut to a line each unless *whole*; *only* those, where given."""
    seen = visible(document.texts)
    texts = [text for text in seen if shown(text) in only] or seen
    entries: list[dict[str, str]] = []
    room = max(_MAX_READ, 2 * usage.limit)
    for text in texts[: None if whole else _MAX_ENTRIES]:
        line = _cut(shown(text), room if whole else _LINE)
        room -= len(line)
        if room < 0:
            break
        entries.append({"id": entry_id(target, text), "text": line})
    state: dict[str, Any] = {"usage": str(usage), "entry_count": len(document.texts), "entries": entries}
    if left_out := len(texts) - len(entries):
        state["not_listed"] = left_out
    if blocked := len(document.texts) - len(seen):
        state["blocked"] = (
            f"{blocked} not shown because of suspicious content: the user sees it with hermes memory list"
        )
    return state


def _nearly_full(usage: Usage) -> str:
    if usage.percent < NEARLY_FULL:
        return ""
    return f"{usage.percent}% of the limit is used: merge or remove entries that matter least."


def _cut(text: str, bound: int) -> str:
    return text if len(text) <= bound else text[: max(0, bound - 1)] + "…"


def _json(reply: dict[str, Any]) -> str:
    return json.dumps(reply, ensure_ascii=False)
