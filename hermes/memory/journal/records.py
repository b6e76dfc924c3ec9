"""The values of the journal: what is owed to a provider, and what became of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import attrs

from hermes.memory.latency import HookStats

DAY = 86400.0


class Kind(StrEnum):
    """What a record tells the provider."""

    TURN = "turn"
    MEMORY_WRITE = "memory_write"
    DELEGATION = "delegation"
    SESSION_END = "session_end"
    SESSION_SWITCH = "session_switch"


class State(StrEnum):
    """Where a record stands.

    ``TRANSCRIPT``: delivered, and kept until the end of its session has been, which needs the turns.
    """

    PENDING = "pending"
    HANDED_OVER = "handed_over"
    DEAD = "dead"
    TRANSCRIPT = "transcript"


class Sent(StrEnum):
    """How a provider took a record: it is in the backend, or it was accepted and nobody knows."""

    STORED = "stored"
    ACCEPTED = "accepted"


@attrs.frozen
class Entry:
    """One thing owed to *provider*; *key* is the same for every attempt to hand it over, *time* in Unix seconds.

    The payload is written out at once, so nothing in it is shared with the caller afterwards.
    """

    kind: Kind
    provider: str
    session_id: str
    payload: Mapping[str, Any]
    key: str
    time: float


def new_key() -> str:
    """A key like no other. Later ones sort behind: an index of keys then grows at its end, not everywhere."""
    return f"{time.time_ns():016x}{os.urandom(8).hex()}"


@attrs.frozen
class Record:
    """An entry as the journal keeps it. *seq* is its place; *first_failed* and *next_try* are Unix seconds."""

    seq: int
    kind: Kind
    provider: str
    session_id: str
    payload: Mapping[str, Any]
    key: str
    time: float
    state: State = State.PENDING
    attempts: int = 0
    first_failed: float | None = None
    next_try: float = 0.0
    error: str = ""
    confirmed: bool = False


@attrs.frozen
class Recorded:
    """What an append did: *durable* when all of it is on disk, *records* new ones, *reason* where it is not."""

    durable: bool
    records: int = 0
    reason: str = ""


@attrs.frozen
class Scrubbed:
    """What forgetting a text did.

    *changed* records lost the text. *waiting* ones tell the provider to forget and keep the text until they
    are delivered. *left* names files in which the text could not be overwritten.
    """

    changed: int = 0
    waiting: int = 0
    left: tuple[Path, ...] = ()


@attrs.frozen
class Health:
    """How deliveries to one provider go; times in Unix seconds."""

    successes: int = 0
    last_success: float | None = None
    failing: int = 0
    """Failures since the last success."""
    last_error: str = ""
    circuit: Literal["closed", "open", "half-open"] = "closed"
    retry_at: float | None = None
    """When an open circuit is tried again."""


@attrs.frozen
class JournalStats:
    """The journal at one moment."""

    mode: Literal["wal", "rollback", "memory"] = "memory"
    undelivered: int = 0
    undelivered_by_provider: Mapping[str, int] = attrs.field(factory=dict)
    oldest: float | None = None
    """Unix time of the oldest undelivered record."""
    handed_over: int = 0
    """Accepted by the provider and not confirmed."""
    dead: int = 0
    held: int = 0
    """Records that are only in the memory of this process."""
    trouble: str = ""
    """Why the disk refuses; empty when it does not."""
    size: int = 0
    """Bytes on disk."""
    over_size: bool = False
    moved_aside: tuple[Path, ...] = ()
    """Damaged journals that were kept beside the new one."""
    health: Mapping[str, Health] = attrs.field(factory=dict)
    hooks: Mapping[str, Mapping[str, HookStats]] = attrs.field(factory=dict)
    """Provider to hook to its calls of the last seven days."""


@attrs.frozen
class DrainState:
    """What is left when delivery stops; *stuck* names the record whose delivery did not return, or is empty."""

    undelivered: int = 0
    handed_over: int = 0
    dead: int = 0
    held: int = 0
    stuck: str = ""
