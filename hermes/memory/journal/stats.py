"""What status shows of a journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import attrs

from hermes.errors import StoreUnavailable
from hermes.memory.journal import queries
from hermes.memory.journal.records import Health, JournalStats, State
from hermes.memory.journal.salvage import moved_aside
from hermes.memory.journal.store import Store
from hermes.memory.latency import HookStats


@attrs.frozen
class Counts:
    """What one connection knows."""

    undelivered: Mapping[str, int]
    oldest: float | None
    handed_over: int
    dead: int
    health: Mapping[str, Health]
    hooks: Mapping[str, Mapping[str, HookStats]]

    @classmethod
    def of(cls, con: sqlite3.Connection, now: float) -> Counts:
        """Count what is behind *con*; *now* in Unix seconds."""
        return cls(
            undelivered=queries.undelivered(con),
            oldest=queries.oldest(con),
            handed_over=queries.count(con, State.HANDED_OVER),
            dead=queries.count(con, State.DEAD),
            health=queries.health(con),
            hooks=queries.hooks(con, now),
        )


def of_store(store: Store, now: float, max_size: int) -> JournalStats:
    """The stats of an open journal; what cannot be read is left out, and ``trouble`` says so."""
    try:
        parts = store.read(lambda con: Counts.of(con, now))
    except StoreUnavailable:
        parts = []
    memory, disk = store.memory, store.disk
    size = disk.size() if disk else 0
    return summed(
        parts,
        mode=disk.mode if disk else "memory",
        held=_pending_in(memory.read(queries.undelivered)) if memory else 0,
        trouble=store.trouble,
        size=size,
        over_size=size > max_size,
        moved_aside=moved_aside(store.path) if store.path else (),
    )


def summed(parts: list[Counts], **others: Any) -> JournalStats:
    """One picture of what lies on disk and what is in memory."""
    undelivered: dict[str, int] = {}
    health: dict[str, Health] = {}
    hooks: dict[str, dict[str, HookStats]] = {}
    for part in parts:
        for provider, number in part.undelivered.items():
            undelivered[provider] = undelivered.get(provider, 0) + number
        for provider, found in part.health.items():
            before = health.get(provider, Health())
            health[provider] = attrs.evolve(
                found,
                successes=before.successes + found.successes,
                last_success=found.last_success or before.last_success,
            )
        for provider, calls in part.hooks.items():
            known = hooks.setdefault(provider, {})
            for hook, more in calls.items():
                known.setdefault(hook, HookStats()).merge(more)
    return JournalStats(
        undelivered=_pending_in(undelivered),
        undelivered_by_provider=undelivered,
        oldest=min((part.oldest for part in parts if part.oldest is not None), default=None),
        handed_over=sum(part.handed_over for part in parts),
        dead=sum(part.dead for part in parts),
        health=health,
        hooks=hooks,
        **others,
    )


def _pending_in(by_provider: Mapping[str, int]) -> int:
    return sum(by_provider.values())
