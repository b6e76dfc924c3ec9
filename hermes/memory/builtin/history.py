"""What was written to the built-in memory, by whom, and what stood there before: undo and provenance.

One JSON line per write, appended without waiting for the disk: the memory files are what must last, and an
undo lost with the power costs nothing that was acknowledged. Bounded: old lines go, except for those that
say where a present entry came from.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from hermes.files import read_bytes, write_atomic
from hermes.memory.builtin.values import ACTIONS, TARGETS, Action, Origin, Target

MAX_BYTES = 512 * 1024
"""Size from which old lines are dropped."""
KEPT_BYTES = MAX_BYTES // 4
"""How much of the newest lines is then kept."""


Live = Collection[tuple[Target, str]]
"""The present entries, each with its file."""


@attrs.frozen
class Step:
    """One entry changed: *content* is there now (removed: was there), *previous* was there before."""

    action: Action
    content: str = ""
    previous: str = ""
    at: int = 0
    """Place of the entry in the file, from 0."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that this step holds."""
        return tuple(text for text in (self.content, self.previous) if text)


@attrs.frozen
class Record:
    """One write: its steps in order, where it came from, and what the file was before."""

    target: Target
    steps: tuple[Step, ...]
    origin: Origin = attrs.field(factory=Origin)
    time: float = attrs.field(factory=time.time)
    before: str = ""
    """Digest of the file before the write, to tell a write that never reached the disk."""
    key: str = ""
    """Id of the pending write that this was, if it was one."""
    id: str = attrs.field(factory=lambda: secrets.token_hex(6))
    undone: bool = False
    trimmed: bool = False
    """Only kept to say where an entry came from: what stood there before is gone."""

    @property
    def can_be_undone(self) -> bool:
        """Whether an undo may start with this one."""
        return not self.undone and not self.trimmed

    def as_line(self) -> bytes:
        """The record as one line of JSON."""
        fields = {
            "id": self.id,
            "time": self.time,
            "target": self.target,
            "steps": [[s.action, s.content, s.previous, s.at] for s in self.steps],
            "origin": self.origin.as_dict(),
            "before": self.before,
            "key": self.key,
            "undone": self.undone,
            "trimmed": self.trimmed,
        }
        return json.dumps({k: v for k, v in fields.items() if v}, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> Record:
        """The record in *fields*. Raises KeyError, TypeError or ValueError where they are none."""
        if fields["target"] not in TARGETS:
            raise ValueError(fields["target"])
        return cls(
            target=fields["target"],
            steps=tuple(_step(*step) for step in fields["steps"]),
            origin=Origin.of(fields.get("origin", {})),
            time=float(fields["time"]),
            before=str(fields.get("before", "")),
            key=str(fields.get("key", "")),
            id=str(fields["id"]),
            undone=bool(fields.get("undone", False)),
            trimmed=bool(fields.get("trimmed", False)),
        )


def _step(action: str, content: str, previous: str, at: int) -> Step:
    if action not in ACTIONS or not isinstance(content, str) or not isinstance(previous, str):
        raise ValueError(action)
    return Step(action, content, previous, int(at))


class History:
    """The history file of one profile.

    ``append`` is called with the lock of the record's memory file held, whatever rewrites the history with
    the locks of both: no lock of its own is needed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Record) -> int:
        """Write *record* at the end; returns the offset at which it begins, for ``take_back``.

        Raises OSError: the write that it tells of can go on without it.
        """
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
        try:
            start = os.fstat(fd).st_size
            line = record.as_line()
            if start and _last_byte(fd, start) != b"\n":  # the last writer died in the middle
                line = b"\n" + line
            try:
                if os.write(fd, line) < len(line):
                    raise OSError("short write")
            except OSError:
                os.ftruncate(fd, start)
                raise
            return start
        finally:
            os.close(fd)

    def take_back(self, record: Record, start: int) -> None:
        """Remove *record*, appended at *start*, whose write failed; nothing if others have written since."""
        end = start + len(record.as_line()) + 1
        with contextlib.suppress(OSError), self.path.open("r+b") as file:
            if start >= 0 and file.seek(0, os.SEEK_END) <= end:
                file.truncate(start)

    def is_long(self) -> bool:
        """Whether old records should go."""
        try:
            return self.path.stat().st_size > MAX_BYTES
        except OSError:
            return False

    def records(self) -> list[Record]:
        """All that is known, oldest first; lines that cannot be read are passed over.

        Raises StoreUnavailable if the file is there and cannot be read.
        """
        return _parse(read_bytes(self.path) or b"")

    def origins(self) -> dict[tuple[Target, str], Record]:
        """The last write of each text."""
        records = self.records()
        return {(r.target, s.content): r for r in records for s in r.steps if s.action != "remove"}

    def unreadable(self) -> int:
        """How many lines are no records."""
        data = read_bytes(self.path) or b""
        return sum(bool(line.strip()) for line in data.splitlines()) - len(_parse(data))

    def mark_undone(self, record: Record) -> None:
        """Note that *record* was taken back, so that the next undo goes further. Raises OSError."""
        self._write(attrs.evolve(r, undone=True) if r.id == record.id else r for r in self.records())

    def drop(self, record: Record) -> None:
        """Remove *record*. Raises OSError."""
        self._write(r for r in self.records() if r.id != record.id)

    def scrub(self, texts: Collection[str]) -> int:
        """Remove every record that holds one of *texts*; how many. Raises OSError."""
        records = self.records()
        kept = [r for r in records if not any(_holds(step, texts) for step in r.steps)]
        if len(kept) < len(records) or self.unreadable():
            self._write(kept)
        return len(records) - len(kept)

    def ancestors(self, texts: Collection[str]) -> set[str]:
        """*texts*, and all that they have replaced."""
        return _with_ancestors(set(texts), self.records())

    def remove(self, target: Target) -> None:
        """Forget the history of *target*. Raises OSError."""
        if self.path.exists():
            self._write(record for record in self.records() if record.target != target)

    def _write(self, records: Iterable[Record]) -> None:
        data = b"".join(record.as_line() for record in records)
        write_atomic(self.path, data, mode=0o600)

    def compact(self, live: Live) -> None:
        """Drop old records, except for what tells where a *live* entry came from. Raises OSError."""
        wanted = set(live)
        kept: list[Record] = []
        size = 0
        for record in reversed(self.records()):
            size += len(record.as_line())
            if size <= KEPT_BYTES or not kept:
                kept.append(record)
            elif steps := [
                s for s in record.steps if s.action != "remove" and (record.target, s.content) in live
            ]:
                bare = tuple(attrs.evolve(step, previous="") for step in steps)
                kept.append(attrs.evolve(record, steps=bare, trimmed=True))
            wanted -= {(record.target, step.content) for step in record.steps}
        self._write(reversed(kept))


def _last_byte(fd: int, size: int) -> bytes:
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1)


def _parse(data: bytes) -> list[Record]:
    found = []
    for line in data.splitlines():
        fields = _json(line)
        if isinstance(fields, dict):
            with contextlib.suppress(KeyError, TypeError, ValueError):  # counted by unreadable()
                found.append(Record.parse(fields))
    return found


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _with_ancestors(texts: set[str], records: Iterable[Record]) -> set[str]:
    for record in reversed(list(records)):
        for step in reversed(record.steps):
            if step.action == "replace" and step.content in texts and step.previous:
                texts.add(step.previous)
    return texts


def _holds(step: Step, texts: Collection[str]) -> bool:
    """A text of a few letters is part of much that has nothing to do with it."""
    return any(text == held or (len(text) > 3 and text in held) for held in step.texts for text in texts)
