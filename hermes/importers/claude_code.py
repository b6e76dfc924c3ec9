"""Transcripts of Claude Code: one JSON line for each block, a tree by ``parentUuid``.

Injected context, summaries, the lines of subagents, commands and tool results are no words of the person and
are left out. A line that was taken back, by going on from an earlier one, is on no way to the last line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from hermes.importers.common import Found, lines, moment, said, texts
from hermes.memory.conversations import Malformed

SOURCE = "claude-code"
_NOT_WORDS = ("<command-name>", "<command-message>", "<local-command-", "<system-reminder>")
_SKIPPED = ("isMeta", "isSidechain", "isCompactSummary")


def read(file: IO[bytes], name: str) -> Iterator[Found]:
    """The messages of the transcript, each answer in one piece."""
    shown = _shown_lines(file, name)
    file.seek(0)
    answer: list[dict[str, Any]] = []
    for where, line in lines(file, name):
        if isinstance(line, Malformed):
            yield line
            continue
        if _id(line.get("uuid")) not in shown or any(line.get(flag) for flag in _SKIPPED):
            continue
        message = line.get("message")
        if line.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            continue
        if answer and not _continues(answer[0], line):
            yield from _said(answer)
            answer = []
        if line["type"] == "assistant":
            answer.append(line)
            continue
        if not isinstance(message.get("content"), str | list):
            yield Malformed(where, "a message without content")
        else:
            yield from _said([line])
    yield from _said(answer)


def _shown_lines(file: IO[bytes], name: str) -> set[int]:
    """The lines on the way from the last one to the first, as short hashes: files are large, memory is not."""
    parents: dict[int, int] = {}
    last = 0
    for _, line in lines(file, name):
        if isinstance(line, Malformed) or not line.get("uuid"):
            continue
        own = _id(line["uuid"])
        parents[own] = _id(line.get("parentUuid") or line.get("logicalParentUuid"))
        if line.get("type") in ("user", "assistant") and not line.get("isSidechain"):
            last = own
    shown: set[int] = set()
    while last and last not in shown:
        shown.add(last)
        last = parents.get(last, 0)
    # a line whose parent is not in the file begins a part of its own, such as what was before a compaction
    return shown if _reaches_the_start(shown, parents) else set(parents)


def _reaches_the_start(shown: set[int], parents: dict[int, int]) -> bool:
    """Whether the way back ends at a line that has no parent, and no other such line was passed by."""
    return all(own in shown for own, parent in parents.items() if not parent)


def _id(uuid: Any) -> int:
    return hash(uuid) if isinstance(uuid, str) and uuid else 0


def _continues(first: dict[str, Any], line: dict[str, Any]) -> bool:
    """Whether *line* is another block of the answer that *first* begins."""
    return bool(line["type"] == "assistant" and line["message"].get("id") == first["message"].get("id"))


def _said(blocks: list[dict[str, Any]]) -> Iterator[Found]:
    """The message that *blocks* make up, if it holds words."""
    if not blocks:
        return
    first = blocks[0]
    text = "\n\n".join(part for line in blocks if (part := texts(line["message"].get("content"))))
    if not text.strip() or text.lstrip().startswith(_NOT_WORDS):
        return
    conversation = str(first.get("sessionId") or "unknown")
    identity = str(first["message"].get("id") or first.get("uuid") or "")
    yield said(SOURCE, conversation, identity, first["type"], text, moment(first.get("timestamp")))
