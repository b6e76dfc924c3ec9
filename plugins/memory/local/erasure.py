"""Whether anything is left of what was forgotten: a search for its bytes in every file of a home."""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

WORK = 4_000_000_000
"""Bytes that are compared at most, so that a large home is searched for a sample of the texts."""
_PIECE = 40
_SHORTEST = 8
_PLAIN = re.compile(r'[^\x00-\x1f"\\]+')
_OF_OTHERS = "profiles"


class Traces(NamedTuple):
    """How many of the texts were looked for, of how many, and the files that hold bytes of one, with those."""

    searched: int
    texts: int
    files: dict[Path, list[str]]


def search(home: Path, texts: Sequence[str]) -> Traces:
    """Look for *texts* in every file below *home*, but not in those of other profiles."""
    files = list(_files(home))
    size = sum(path.stat().st_size for path in files if path.exists()) or 1
    longest = sorted(set(texts), key=len, reverse=True)
    probes = {text: sought for text in longest if (sought := _probes(text))}
    chosen = dict(list(probes.items())[: max(10, WORK // size)])
    held = {path: found for path in files if (found := _held(path, chosen))}
    return Traces(len(chosen), len(set(texts)), held)


def _files(home: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(home):
        if Path(folder) == home and _OF_OTHERS in below:
            below.remove(_OF_OTHERS)
        for name in names:
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                yield path


def pieces(text: str) -> list[str]:
    """The beginning and the end of the longest part of *text* that every kind of file holds as it is."""
    part = max(_PLAIN.findall(text), key=len, default="")
    return [part[:_PIECE], part[-_PIECE:]]


def _probes(text: str) -> list[bytes]:
    """What stands in a file that holds *text*, or what is left of it after a part was overwritten."""
    forms = {form for part in pieces(text) for form in (part, json.dumps(part)[1:-1])}
    found = {form.encode("utf-8", "replace") for form in forms}
    return sorted(probe for probe in found if len(probe) >= _SHORTEST)


def _held(path: Path, probes: dict[str, list[bytes]]) -> list[str]:
    """The texts of which *path* holds a piece."""
    try:
        with path.open("rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return []
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return [text for text, pieces in probes.items() if any(content.find(p) >= 0 for p in pieces)]
    except FileNotFoundError:  # gone meanwhile
        return []
