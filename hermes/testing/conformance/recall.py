"""Everything that a provider gives out about what it was told."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.memory.seat import Seat
from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.session import QUESTION, tool_calls

_MOST = 1000


def given_out(seat: Seat, bench: Bench, session: str) -> Iterator[tuple[str, str]]:
    """What each way of reading gives, as text; what fails gives nothing. No tool is called."""
    yield "prefetch", _text(bench.answer(seat, "prefetch", QUESTION, session_id=session))
    yield "search_records", _text(bench.answer(seat, "search_records", "ferry Ormsby"))
    yield "export_records", _text(bench.answer(seat, "export_records"))
    yield "system_prompt_block", _text(bench.answer(seat, "system_prompt_block"))


def tools_give(seat: Seat, bench: Bench) -> Iterator[tuple[str, str]]:
    """What each tool answers when it is asked for what the question is about."""
    for heard in tool_calls(seat, bench, QUESTION):
        yield heard.about or heard.member, _text(heard.answer)


def in_files(folder: Path, word: str) -> Path | None:
    """The first file below *folder* that holds *word*."""
    needle = word.encode()
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file() and needle in path.read_bytes():
                return path
        except OSError:
            continue
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if not isinstance(value, dict | list | tuple):
        value = list(itertools.islice(value, _MOST))
    return json.dumps(value, default=str, ensure_ascii=False)
