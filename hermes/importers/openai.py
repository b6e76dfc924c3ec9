"""Messages in the form of OpenAI: in lines, as one conversation, or as a list of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from hermes.importers.common import Found
from hermes.memory import conversations


def read(file: IO[bytes], name: str) -> Iterator[Found]:
    """The messages, in order."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace")
    try:
        yield from conversations.read(text, name)
    finally:
        text.detach()
