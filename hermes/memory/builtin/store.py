"""The two memory files of a profile: read, and changed under their lock, all or nothing."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol

import attrs

from hermes.errors import EntryNotFound, EntryRefused, HermesError, StoreUnavailable
from hermes.files import describe_failure, locked, read_bytes, write_atomic
from hermes.memory.builtin.addressing import find, fold
from hermes.memory.builtin.content import check
from hermes.memory.builtin.entries import Document, shown
from hermes.memory.builtin.history import History, Live, Record, Step
from hermes.memory.builtin.values import (
    FILES,
    LABELS,
    SETTINGS,
    TARGETS,
    Change,
    Enabled,
    Limits,
    Operation,
    Origin,
    Target,
)
from hermes.memory.threats import scan_for_threats
from hermes.paths import ProfilePaths

Status = Literal["added", "duplicate", "replaced", "removed", "unchanged"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@attrs.frozen
class Result:
    """What became of one operation: *previous* is the whole entry that it replaced or removed."""

    operation: Operation
    status: Status
    previous: str = ""

    def change(self, target: Target) -> Change | None:
        """What a provider is told; None where nothing changed."""
        if self.status in ("duplicate", "unchanged"):
            return None
        previous = shown(self.previous)
        return Change(
            action=self.operation.action,
            target=target,
            content=previous if self.status == "removed" else self.operation.content,
            old_text=self.operation.old_text,
            previous_content=previous,
        )


@attrs.frozen
class Edit:
    """A file before and after some operations; nothing is written by making one."""

    before: Document
    after: Document
    results: tuple[Result, ...]
    steps: tuple[Step, ...]

    @property
    def changed(self) -> bool:
        """Whether the file differs."""
        return bool(self.steps)


@attrs.frozen
class Applied:
    """A write that is on disk: the file as it is now, and what could not be kept for undo, if anything."""

    target: Target
    document: Document
    results: tuple[Result, ...]
    key: str = ""
    warning: str = ""

    @property
    def changes(self) -> tuple[Change, ...]:
        """What a provider is to be told, in order."""
        made = [change for result in self.results if (change := result.change(self.target)) is not None]
        return numbered(made, self.key)


class Guard(Protocol):
    """Looks on while a file is written."""

    def check(self, before: Document, after: Document) -> None:
        """About to be written; raises EntryRefused to stop it."""

    def committed(self, before: Document, after: Document) -> None:
        """Written."""


class Store:
    """MEMORY.md and USER.md of one profile. The paths are fixed when it is made."""

    def __init__(self, paths: ProfilePaths, limits: Limits, enabled: Enabled) -> None:
        self.folder = paths.memories
        self._paths = {target: paths.memories / FILES[target] for target in TARGETS}
        self.limits = limits
        self.enabled = enabled
        self.history = History(paths.memories / ".history.jsonl")

    def path(self, target: Target) -> Path:
        """The file of *target*."""
        return self._paths[target]

    def read(self, target: Target) -> Document:
        """The file of *target* as it is now. Raises StoreUnavailable: what cannot be read is not empty."""
        path = self.path(target)
        data = read_bytes(path) or b""
        if data.startswith(_UTF16):
            raise StoreUnavailable(path, "saved as UTF-16", next_step="save it again as UTF-8")
        return Document.parse(data)

    def live(self) -> Live:
        """All present entries of both files."""
        found: set[tuple[Target, str]] = set()
        for target in FILES:
            try:
                found.update((target, text) for text in self.read(target).texts)
            except StoreUnavailable:  # its origins are lost with it
                continue
        return found

    def check_enabled(self, target: Target) -> None:
        """Raises EntryRefused where *target* is switched off."""
        if not self.enabled.of(target):
            raise EntryRefused(
                f"the {LABELS[target]} is off",
                kind="off",
                next_step=f"hermes config set {SETTINGS[target]} true",
            )

    def write(
        self,
        target: Target,
        operations: Sequence[Operation],
        origin: Origin,
        *,
        guard: Guard | None = None,
        by_model: bool = False,
        recorded: bool = True,
        key: str = "",
    ) -> Applied:
        """Carry out *operations* on *target*, all or none, and return when they are on disk.

        *by_model*: entries that the model does not see cannot be addressed. *recorded*: whether the history
        learns of it. *key*: id of the pending write that this is. Raises EntryRefused or EntryNotFound where
        the request cannot be met, StoreUnavailable where the file cannot be read or written; the file is
        then as it was.
        """
        self.check_enabled(target)
        with self.locked(target):
            edit = self.plan(target, self.read(target), operations, by_model=by_model)
            if guard is not None and edit.changed:
                guard.check(edit.before, edit.after)
            warning = ""
            if edit.changed and recorded:
                warning = self._commit(target, edit, origin, key)
            elif edit.changed:
                self.save(target, edit.after)
            if guard is not None and edit.changed:
                guard.committed(edit.before, edit.after)
        if edit.changed and self.history.is_long():
            warning = self._shorten_history() or warning
        return Applied(target, edit.after, edit.results, key, warning)

    @contextlib.contextmanager
    def locked(self, *targets: Target) -> Iterator[None]:
        """Hold the locks of the files of *targets*; those of both give the history too."""
        with contextlib.ExitStack() as held:
            for path in (self.path(target) for target in TARGETS if target in targets):
                if path.is_symlink():
                    read_bytes(path)  # a link that leads nowhere is refused before anything is made there
                held.enter_context(locked(path))
            yield

    def plan(
        self, target: Target, document: Document, operations: Sequence[Operation], *, by_model: bool
    ) -> Edit:
        """What *operations* would make of *document*. Raises EntryRefused, EntryNotFound."""
        limit = self.limits.of(target)
        after = document
        results: list[Result] = []
        steps: list[Step] = []
        for number, operation in enumerate(operations, 1):
            try:
                after, result, step = _carry_out(after, operation, target, limit, by_model=by_model)
            except (EntryRefused, EntryNotFound) as exc:
                if isinstance(exc, EntryNotFound):
                    exc.current = self._became(target, operation.old_text, after.texts)
                if len(operations) > 1:
                    exc.message = f"operation {number}: {exc.message}"
                raise
            results.append(result)
            if step is not None:
                steps.append(step)
        if after.used > limit and after.used > document.used:
            raise EntryRefused(
                f"the {LABELS[target]} would hold {after.used:,} characters, and its limit is {limit:,}",
                kind="limit",
                entries=list(map(shown, document.texts)),
                next_step="merge or remove entries first, or do both in one batch of operations",
            )
        return Edit(document, after, tuple(results), tuple(steps))

    def _became(self, target: Target, old_text: str, texts: tuple[str, ...]) -> str:
        """What the entry that held *old_text* was replaced with, if that still stands; empty if not known."""
        wanted = fold(old_text)
        found = ""
        try:
            records = self.history.records()
        except StoreUnavailable:  # a hint less
            return ""
        for step in (step for record in records if record.target == target for step in record.steps):
            if step.action == "replace" and wanted in fold(shown(step.previous)):
                found, wanted = step.content, fold(shown(step.content))
        return shown(found) if found in visible(texts) else ""

    def save(self, target: Target, document: Document) -> None:
        """Write *document* as the file of *target*, whose lock is held; it is on disk on return.

        Raises StoreUnavailable; the file is then as it was.
        """
        path = self.path(target)
        try:
            write_atomic(path, document.data)
        except OSError as exc:
            reason = f"not saved: {describe_failure(path, exc)}; the file is as it was"
            raise StoreUnavailable(path, reason) from exc

    def _commit(self, target: Target, edit: Edit, origin: Origin, key: str) -> str:
        """Write *edit*, its record first; returns what is wrong with the record, if anything."""
        record = Record(target, edit.steps, origin, before=digest(edit.before), key=key)
        warning, start = "", -1
        try:
            start = self.history.append(record)
        except OSError as exc:
            warning = f"this write cannot be undone: {self.history.path}: {exc}"
        try:
            self.save(target, edit.after)
        except BaseException:
            self.history.take_back(record, start)
            raise
        return warning

    def _shorten_history(self) -> str:
        """Drop old records; returns what went wrong, if anything."""
        try:
            with self.locked(*TARGETS):
                if self.history.is_long():
                    self.history.compact(self.live())
        except (OSError, HermesError) as exc:
            return f"the history grows too long: {self.history.path}: {exc}"
        return ""


def numbered(changes: Sequence[Change], key: str) -> tuple[Change, ...]:
    """*changes*, each with a key of its own made of *key*, if there is one."""
    return tuple(
        attrs.evolve(change, key=f"{key}:{i}") if key else change for i, change in enumerate(changes)
    )


def digest(document: Document) -> str:
    """A short fingerprint of the whole file."""
    return hashlib.sha256(document.data).hexdigest()[:16]


@lru_cache(maxsize=64)
def visible(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Those of *texts* that the model may see."""
    return tuple(text for text in texts if not scan_for_threats(text))


def _carry_out(
    document: Document, operation: Operation, target: Target, limit: int, *, by_model: bool
) -> tuple[Document, Result, Step | None]:
    """One operation on *document*; no step where it changes nothing."""
    texts = document.texts
    if operation.action == "add":
        if operation.content in texts:
            return document, Result(operation, "duplicate"), None
        check(operation.content, limit)
        return (
            document.added(operation.content),
            Result(operation, "added"),
            Step("add", operation.content, at=len(texts)),
        )
    old = find(visible(texts) if by_model else texts, operation.old_text, target)
    place = texts.index(old)
    if operation.action == "remove":
        return document.removed(old), Result(operation, "removed", old), Step("remove", old, old, place)
    check(operation.content, limit)
    if operation.content == old:
        return document, Result(operation, "unchanged", old), None
    done = document.replaced(old, operation.content)
    return done, Result(operation, "replaced", old), Step("replace", operation.content, old, place)
