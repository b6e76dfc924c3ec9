"""From a file to its messages, whatever it is: a database, an archive, or text."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from hermes.importers import hermes_agent
from hermes.importers.common import Found
from hermes.importers.recognise import HERMES_AGENT, is_hermes_agent, recognise
from hermes.memory.conversations import Malformed

_SQLITE = b"SQLite format 3\0"
_ZIP = b"PK\x03\x04"
IN_MEMORY = 16 << 20
"""Bytes of standard input, or of a member of an archive, that are kept in memory; more goes to a file."""


class _Watched(io.FileIO):
    """A file that tells how far it was read, as a share of 1."""

    def __init__(self, path: Path, progress: Callable[[float], None]) -> None:
        super().__init__(path)
        self._size = path.stat().st_size or 1
        self._progress = progress

    def readinto(self, buffer: Any) -> int | None:
        """As ever."""
        count = super().readinto(buffer)
        self._progress(self.tell() / self._size)
        return count


def read(
    path: Path,
    name: str,
    *,
    told: Callable[[str], None] = lambda _: None,
    progress: Callable[[float], None] = lambda _: None,
) -> Iterator[Found]:
    """The messages in the file at *path*. Raises OSError.

    *told* hears what it was taken for, *progress* how far it was read, from 0 to 1.
    """
    with io.BufferedReader(_Watched(path, progress), 1 << 20) as file:
        head = file.read(len(_SQLITE))
        file.seek(0)
        if head == _SQLITE:
            if is_hermes_agent(path):
                told(HERMES_AGENT)
                yield from hermes_agent.read(path, name)
            else:
                yield Malformed(name, "a database that is not known here")
        elif head.startswith(_ZIP):
            yield from _archive(file, name, told)
        else:
            yield from _text(file, name, told)


def read_stream(
    stream: IO[bytes], name: str, *, told: Callable[[str], None] = lambda _: None
) -> Iterator[Found]:
    """The messages in *stream*, which can be read once only."""
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as file:
        shutil.copyfileobj(stream, file)
        file.seek(0)
        yield from _text(file, name, told)


def _text(file: IO[bytes], name: str, told: Callable[[str], None]) -> Iterator[Found]:
    found = recognise(file)
    told(found.name)
    yield from found.read(file, name)


def _archive(file: IO[bytes], name: str, told: Callable[[str], None]) -> Iterator[Found]:
    """The conversations in an export that is still packed."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = sorted(
                member for member in archive.namelist() if Path(member).match("conversations*.json")
            )
            if not members:
                yield Malformed(name, "an archive without conversations.json")
            for member in members:
                with archive.open(member) as packed:
                    yield from read_stream(packed, f"{name}/{member}", told=told)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as exc:
        yield Malformed(name, f"the archive cannot be read: {exc}")
