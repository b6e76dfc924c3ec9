"""The built-in memory of one profile, for the person: look, write, undo, approve, forget."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from hermes.errors import EntryNotFound, EntryRefused, HermesError, StoreUnavailable
from hermes.memory.builtin import forgetting, undoing
from hermes.memory.builtin.approval import Pending, PendingWrites
from hermes.memory.builtin.content import clean
from hermes.memory.builtin.entries import Document, shown
from hermes.memory.builtin.history import Record
from hermes.memory.builtin.store import Applied, Store, numbered
from hermes.memory.builtin.undoing import Undone
from hermes.memory.builtin.values import (
    NEARLY_FULL,
    PERSON,
    TARGETS,
    Change,
    Enabled,
    Entry,
    Limits,
    Operation,
    Origin,
    Target,
    Usage,
    entry_id,
)
from hermes.memory.threats import first_threat_message
from hermes.paths import ProfilePaths

Mirror = Callable[[Change, Origin], object]
"""Tells a provider of a change; it may be told twice of one, with the same key."""


@attrs.frozen
class Forgotten:
    """What a removal took away: the write itself, and every *text* to be forgotten by other stores too."""

    applied: Applied
    texts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Files that could not be cleaned, each with the reason."""


@attrs.frozen
class Reverted:
    """What was taken back, and, where it was to be forgotten, what ``Forgotten`` says."""

    undone: tuple[Undone, ...]
    texts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@attrs.frozen
class Decision:
    """What became of one pending write."""

    id: str
    ok: bool
    message: str
    changes: tuple[Change, ...] = ()


class BuiltinMemory:
    """MEMORY.md, USER.md, their history and the writes that wait. Making one reads and creates nothing."""

    def __init__(
        self, paths: ProfilePaths, *, limits: Limits | None = None, enabled: Enabled | None = None
    ) -> None:
        self.limits = limits or Limits()
        self.enabled = enabled or Enabled()
        self.store = Store(paths, self.limits, self.enabled)
        self._pending = PendingWrites(paths.pending)

    # -- looking ---------------------------------------------------------------------------------------

    def entries(self, target: Target) -> list[Entry]:
        """The entries of *target*, those included that the model does not see. Raises StoreUnavailable."""
        texts = self.store.read(target).texts
        try:
            origins = self.store.history.origins() if texts else {}
        except StoreUnavailable:  # told by warnings(); the entries are there all the same
            origins = {}
        return [_entry(target, text, origins.get((target, text))) for text in texts]

    def search(self, query: str) -> list[Entry]:
        """The entries of both halves that hold every word of *query*, in any case."""
        words = query.casefold().split()
        found = [entry for target in self.enabled.targets for entry in self.entries(target)]
        return [entry for entry in found if all(word in entry.text.casefold() for word in words)]

    def usage(self) -> list[Usage]:
        """How full both halves are; one that is off or cannot be read says so. Never raises."""
        return [self._usage(target) for target in TARGETS]

    def usage_of(self, target: Target, document: Document) -> Usage:
        """How full *document* makes *target*."""
        texts = document.texts
        blocked = sum(first_threat_message(text) is not None for text in texts)
        return Usage(
            target,
            self.enabled.of(target),
            len(texts),
            document.used,
            self.limits.of(target),
            blocked=blocked,
        )

    def warnings(self) -> list[str]:
        """What the person should know, one line each. Never raises."""
        found: list[str] = []
        for target in self.enabled.targets:
            try:
                found += self._warnings_of(target)
            except StoreUnavailable as exc:
                found.append(f"{exc}: {exc.next_step}")
        try:
            if count := self.waiting():
                found.append(f"{_writes(count)} for approval: hermes memory pending")
            if broken := self.store.history.unreadable():
                found.append(
                    f"{self.store.history.path}: {broken} damaged lines: what they tell cannot be undone"
                )
        except StoreUnavailable as exc:
            found.append(f"{exc}: {exc.next_step}")
        return found

    def history(self) -> list[Record]:
        """All writes that are known, oldest first."""
        return self.store.history.records()

    # -- writing ---------------------------------------------------------------------------------------

    def add(self, target: Target, content: str, *, origin: Origin = PERSON) -> Applied:
        """Add an entry. Raises EntryRefused, StoreUnavailable."""
        return self.apply(target, [Operation("add", clean(content))], origin=origin)

    def replace(self, target: Target, old_text: str, content: str, *, origin: Origin = PERSON) -> Applied:
        """Put *content* in place of the whole entry meant by *old_text* (part of it, or its id).

        Raises EntryNotFound (with what the entry is now, if it was changed meanwhile), EntryRefused,
        StoreUnavailable.
        """
        return self.apply(target, [Operation("replace", clean(content), old_text)], origin=origin)

    def remove(
        self, target: Target, old_text: str, *, forget: bool = True, origin: Origin = PERSON
    ) -> Forgotten:
        """Remove the entry meant by *old_text* (part of it, or its id).

        *forget*: every trace of it goes from history, pending writes and backups, so that it cannot be
        undone; the texts to forget elsewhere are in the answer. Raises as ``replace`` does.
        """
        operation = Operation("remove", old_text=old_text)
        applied = self.store.write(target, [operation], origin, recorded=not forget)
        if not forget:
            return Forgotten(applied)
        return self._forgotten(applied, [result.previous for result in applied.results])

    def apply(self, target: Target, operations: Sequence[Operation], *, origin: Origin = PERSON) -> Applied:
        """Carry out several writes, all or none. Raises as ``replace`` does."""
        return self.store.write(target, operations, origin)

    # -- taking back -----------------------------------------------------------------------------------

    def undo(self) -> Undone:
        """Take the last write back, whoever made it. Raises NotFound if there is none, StoreUnavailable."""
        return undoing.undo(self.store)

    def revert(
        self, *, session_id: str | None = None, write_origin: str | None = None, forget: bool = False
    ) -> Reverted:
        """Take back all writes of a session, or of an origin, newest first; *forget* leaves no trace of them.

        What such a write replaced is put back, even if the file is then over its limit. Raises
        StoreUnavailable.
        """
        if session_id is None and write_origin is None:
            raise EntryRefused("name a session or an origin", kind="arguments")

        def meant(record: Record) -> bool:
            return session_id in (None, record.origin.session_id) and write_origin in (
                None,
                record.origin.write_origin,
            )

        undone = undoing.revert(self.store, meant)
        gone = undoing.taken_away(undone)
        if not forget or not gone:
            return Reverted(tuple(undone))
        texts, problems = forgetting.forget(self.store, self._pending, gone)
        return Reverted(tuple(undone), tuple(map(shown, texts)), tuple(problems))

    def reset(self, *targets: Target) -> list[str]:
        """Delete the files of *targets* with their history, backups and pending writes; the paths that went.

        Works on a half that is off too: there is nothing that it could write. Raises StoreUnavailable.
        """
        return [
            str(path) for target in targets for path in forgetting.reset(self.store, self._pending, target)
        ]

    # -- approval --------------------------------------------------------------------------------------

    def waiting(self) -> int:
        """How many writes wait for approval."""
        return len(self._pending.items())

    def pending(self) -> list[Pending]:
        """The writes that wait for approval, oldest first."""
        return self._pending.items()

    def stage(self, target: Target, operations: Sequence[Operation], origin: Origin) -> Pending:
        """Keep a write of the model for approval, if it could be carried out as things stand.

        Raises EntryRefused, EntryNotFound, StoreUnavailable.
        """
        self.store.check_enabled(target)
        document = self.store.read(target)
        for item in self._pending.items():
            if item.target == target and item.operations:
                try:
                    document = self.store.plan(target, document, item.operations, by_model=True).after
                except (EntryRefused, EntryNotFound):  # it is stale; approval will say so
                    continue
        self.store.plan(target, document, operations, by_model=True)
        return self._pending.stage(target, operations, origin)

    def approve(self, ids: Sequence[str] | None = None, *, mirror: Mirror | None = None) -> list[Decision]:
        """Carry out pending writes (all, or *ids*), each for itself, and tell *mirror* of every change.

        One that cannot be carried out stays, with the reason in its decision.
        """
        return self._decide(ids, lambda item: self._approve(item, mirror))

    def reject(self, ids: Sequence[str] | None = None) -> list[Decision]:
        """Throw pending writes away (all, or *ids*)."""

        def throw_away(item: Pending) -> Decision:
            self._pending.remove(item.id)
            return Decision(item.id, True, "rejected")

        return self._decide(ids, throw_away)

    def _decide(self, ids: Sequence[str] | None, act: Callable[[Pending], Decision]) -> list[Decision]:
        if not self._pending.items():
            return [Decision(item_id, False, "there is no such pending write") for item_id in ids or ()]
        decisions = []
        with self._pending.lock():
            for item_id in ids if ids is not None else [item.id for item in self._pending.items()]:
                try:
                    decisions.append(act(self._pending.get(item_id)))
                except HermesError as exc:
                    decisions.append(Decision(item_id, False, f"{exc}: {exc.next_step}"))
        return decisions

    def _approve(self, item: Pending, mirror: Mirror | None) -> Decision:
        if item.problem:
            raise StoreUnavailable(self._pending.folder / f"{item.id}.json", item.problem)
        changes = self._applied_before(item)
        if changes is None:
            changes = self.store.write(
                item.target, item.operations, item.origin, by_model=True, key=item.id
            ).changes
        try:
            for change in changes if mirror is not None else ():
                mirror(change, item.origin)  # type: ignore[misc]
        except Exception as exc:  # noqa: BLE001 - others' code; it is told again at the next approval
            return Decision(item.id, False, f"saved, but not handed on: {exc}; approve it again", changes)
        self._pending.remove(item.id)
        return Decision(
            item.id, True, "saved" if changes else "nothing to save: it was there already", changes
        )

    def _applied_before(self, item: Pending) -> tuple[Change, ...] | None:
        """What an approval that died before its end has written already; None if there was none."""
        record = next((r for r in self.store.history.records() if r.key == item.id and not r.undone), None)
        if record is None or not undoing.is_on_disk(self.store, record):
            return None
        steps = [Change(s.action, record.target, s.content, "", s.previous) for s in record.steps]
        return numbered(steps, item.id)

    def _usage(self, target: Target) -> Usage:
        nothing = Usage(target, self.enabled.of(target), 0, 0, self.limits.of(target))
        if not nothing.enabled:
            return nothing
        try:
            return self.usage_of(target, self.store.read(target))
        except StoreUnavailable as exc:
            return attrs.evolve(nothing, problem=str(exc))

    def _warnings_of(self, target: Target) -> list[str]:
        document, path = self.store.read(target), self.store.path(target)
        usage = self.usage_of(target, document)
        found = [
            f"{path}: entry {entry_id(target, text)} is not shown to the model: {why}"
            for text in document.texts
            if (why := first_threat_message(text))
        ]
        if odd := document.undecodable():
            line, byte = odd[0]
            more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
            found.append(
                f"{path}: byte {byte} in line {line}{more} is not UTF-8; it is kept, and shown as \ufffd"
            )
        if usage.percent >= NEARLY_FULL:
            found.append(f"{path}: {usage}: merge or remove entries")
        return found

    def _forgotten(self, applied: Applied, texts: Sequence[str]) -> Forgotten:
        everywhere, problems = forgetting.forget(self.store, self._pending, texts)
        return Forgotten(applied, tuple(map(shown, everywhere)), tuple(problems))


def _entry(target: Target, text: str, record: Record | None) -> Entry:
    return Entry(
        id=entry_id(target, text),
        target=target,
        text=shown(text),
        blocked=first_threat_message(text) or "",
        origin=record.origin if record else None,
        time=record.time if record else None,
    )


def _writes(count: int) -> str:
    return "1 memory write waits" if count == 1 else f"{count} memory writes wait"
