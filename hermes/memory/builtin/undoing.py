"""Taking writes back: the last one, or all of one origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from hermes.errors import NotFound, StoreUnavailable
from hermes.files import describe_failure
from hermes.memory.builtin.entries import Document, shown
from hermes.memory.builtin.history import Record, Step
from hermes.memory.builtin.store import Store, digest
from hermes.memory.builtin.values import TARGETS, Change


@attrs.frozen
class Undone:
    """One write that was taken back: what changed by that, and what could not, as it changed since."""

    record: Record
    changes: tuple[Change, ...] = ()
    conflicts: tuple[str, ...] = ()
    """One line for each entry that was changed or removed since."""


def undo(store: Store) -> Undone:
    """Take the last write back. Raises NotFound if there is none, StoreUnavailable."""
    while True:
        record = _last(store)
        if record is None:
            raise NotFound("there is nothing to undo", next_step="hermes memory list shows what is there")
        with store.locked(*TARGETS):
            if _last(store) != record:
                continue  # another process was faster
            document = store.read(record.target)
            if record.before == digest(document):  # it never reached the disk
                _rewrite(store, store.history.drop, record)
                continue
            return _take_back(store, document, record)


def revert(store: Store, meant: Callable[[Record], bool]) -> list[Undone]:
    """Take back every write that is *meant*, newest first. Raises StoreUnavailable."""
    undone = []
    for record in reversed(store.history.records()):
        if not record.undone and meant(record) and store.enabled.of(record.target):
            with store.locked(*TARGETS):
                undone.append(_take_back(store, store.read(record.target), record))
    return undone


def is_on_disk(store: Store, record: Record) -> bool:
    """Whether *record* tells of a write that was made, and not of one that died just before."""
    return record.before != digest(store.read(record.target))


def taken_away(undone: Sequence[Undone]) -> list[str]:
    """The texts that are gone after all these were taken back."""
    return [step.content for each in undone for step in each.record.steps if step.action != "remove"]


def _last(store: Store) -> Record | None:
    records = store.history.records()
    return next((r for r in reversed(records) if r.can_be_undone and store.enabled.of(r.target)), None)


def _take_back(store: Store, document: Document, record: Record) -> Undone:
    changes: list[Change] = []
    conflicts: list[str] = []
    after = document
    for step in reversed(record.steps):
        done = _reverse(after, step)
        if done is None:
            conflicts.append(f"changed since: {shown(step.content or step.previous)}")
            continue
        after, change = done
        if change is not None:
            changes.append(attrs.evolve(change, target=record.target))
    if changes:
        store.save(record.target, after)
    _rewrite(store, store.history.mark_undone, record)
    return Undone(record, tuple(changes), tuple(conflicts))


def _rewrite(store: Store, change: Callable[[Record], None], record: Record) -> None:
    try:
        change(record)
    except OSError as exc:
        path = store.history.path
        raise StoreUnavailable(path, describe_failure(path, exc)) from exc


def _reverse(document: Document, step: Step) -> tuple[Document, Change | None] | None:
    """*document* without *step*, and what to tell a provider; None if the entry was changed since."""
    texts = document.texts
    if step.action == "remove":
        if step.previous in texts:
            return document, None
        return document.added(step.previous, at=step.at), Change("add", "memory", shown(step.previous))
    if step.content not in texts:
        return None
    content = shown(step.content)
    if step.action == "add" or not step.previous:
        return document.removed(step.content), Change("remove", "memory", content, content, content)
    previous = shown(step.previous)
    return document.replaced(step.content, step.previous), Change(
        "replace", "memory", previous, content, content
    )
