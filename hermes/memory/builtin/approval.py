"""Writes of the model that wait for the person: one JSON file each in ``pending/memory/``."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import attrs

from hermes.errors import HermesError, NotFound, StoreUnavailable
from hermes.files import describe_failure, locked, private_dir, read_bytes, write_atomic
from hermes.memory.builtin.content import clean
from hermes.memory.builtin.values import ACTIONS, TARGETS, Operation, Origin, Target

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@attrs.frozen
class Pending:
    """One write that waits."""

    id: str
    target: Target
    operations: tuple[Operation, ...]
    origin: Origin = attrs.field(factory=Origin)
    time: float = 0.0
    """When it was asked for, in Unix seconds."""
    problem: str = ""
    """Why the file cannot be read as a pending write; it is then left alone."""

    def touches(self, text: str) -> bool:
        """Whether it would write *text*, or addresses an entry by part of it."""
        return any(
            text in op.content or text in op.old_text or (op.old_text or "\0") in text
            for op in self.operations
        )


class PendingWrites:
    """The folder of pending writes of one profile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lock(self) -> AbstractContextManager[None]:
        """Held while pending writes are carried out or thrown away: each is so once."""
        return locked(self.folder / "approvals")

    def items(self) -> list[Pending]:
        """All that wait, oldest first."""
        try:
            names = sorted(path.name for path in self.folder.iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise StoreUnavailable(self.folder, describe_failure(self.folder, exc)) from exc
        found = [item for name in names if (item := self._read(self.folder / name)) is not None]
        return sorted(found, key=lambda item: (item.time, item.id))

    def get(self, item_id: str) -> Pending:
        """The pending write *item_id*. Raises NotFound."""
        item = self._read(self.folder / f"{item_id}.json") if _ID.fullmatch(item_id) else None
        if item is None:
            raise NotFound(f"no pending write {item_id[:64]!r}", next_step="hermes memory pending lists them")
        return item

    def stage(self, target: Target, operations: Sequence[Operation], origin: Origin) -> Pending:
        """Keep a write for the person; the same one waits once only. Raises StoreUnavailable."""
        for item in self.items():
            if item.target == target and item.operations == tuple(operations):
                return item
        item = Pending(secrets.token_hex(4), target, tuple(operations), origin, time.time())
        fields = {
            "id": item.id,
            "target": target,
            "operations": [operation.as_dict() for operation in operations],
            "origin": origin.as_dict(),
            "time": item.time,
        }
        path = self.folder / f"{item.id}.json"
        private_dir(self.folder)
        data = json.dumps(fields, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
        try:
            write_atomic(path, data, mode=0o600)
        except OSError as exc:
            raise StoreUnavailable(path, f"not staged: {describe_failure(path, exc)}") from exc
        return item

    def remove(self, item_id: str) -> None:
        """Throw the pending write *item_id* away. Raises StoreUnavailable."""
        path = self.folder / f"{item_id}.json"
        try:
            path.unlink(missing_ok=True)
        except OSError as exc:
            raise StoreUnavailable(path, describe_failure(path, exc)) from exc

    def scrub(self, texts: Collection[str]) -> int:
        """Throw away what holds one of *texts*, or addresses an entry by part of one; how many."""
        gone = [item for item in self.items() if any(item.touches(text) for text in texts)]
        for item in gone:
            self.remove(item.id)
        return len(gone)

    def _read(self, path: Path) -> Pending | None:
        try:
            data = read_bytes(path)
            return None if data is None else _parse(path.stem, json.loads(data))
        except (ValueError, TypeError, KeyError, AttributeError) as exc:
            return Pending(path.stem, "memory", (), problem=f"no pending write: {exc}")
        except HermesError as exc:
            return Pending(path.stem, "memory", (), problem=str(exc))


def _parse(item_id: str, fields: Mapping[str, Any]) -> Pending:
    if fields["target"] not in TARGETS:
        raise ValueError(f"target {fields['target']!r}")
    operations = tuple(_operation(**operation) for operation in fields["operations"])
    return Pending(
        item_id,
        fields["target"],
        operations,
        Origin.of(fields.get("origin", {})),
        float(fields.get("time", 0)),
    )


def _operation(action: str, content: str = "", old_text: str = "") -> Operation:
    if action not in ACTIONS or not isinstance(content, str) or not isinstance(old_text, str):
        raise ValueError(f"operation {action!r}")
    return Operation(action, clean(content), old_text)
