"""The values of the built-in memory: which files there are, what a write asks for, what it changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import attrs

Target = Literal["memory", "user"]
Action = Literal["add", "replace", "remove"]

TARGETS: tuple[Target, ...] = ("memory", "user")
ACTIONS: tuple[Action, ...] = ("add", "replace", "remove")
FILES: Mapping[Target, str] = {"memory": "MEMORY.md", "user": "USER.md"}
LABELS: Mapping[Target, str] = {"memory": "memory", "user": "user profile"}
SETTINGS: Mapping[Target, str] = {"memory": "memory.memory_enabled", "user": "memory.user_profile_enabled"}

NEARLY_FULL = 90
"""Per cent used from which a warning is given."""


@attrs.frozen
class Limits:
    """How many characters each file may hold: the entries joined by their separators."""

    memory: int = attrs.field(default=2200, validator=attrs.validators.gt(0))
    user: int = attrs.field(default=1375, validator=attrs.validators.gt(0))

    def of(self, target: Target) -> int:
        """The limit of *target*."""
        return self.memory if target == "memory" else self.user


@attrs.frozen
class Enabled:
    """Which halves are on. What is off has no tool target, no prompt block, and is written by nothing."""

    memory: bool = True
    user: bool = True

    def of(self, target: Target) -> bool:
        """Whether *target* is on."""
        return self.memory if target == "memory" else self.user

    @property
    def targets(self) -> tuple[Target, ...]:
        """The halves that are on."""
        return tuple(target for target in TARGETS if self.of(target))


@attrs.frozen
class Origin:
    """Where a write came from. ``write_origin`` is ``person``, ``model``, or what the host says."""

    write_origin: str = ""
    session_id: str = ""
    parent_session_id: str = ""
    platform: str = ""
    tool_name: str = ""
    execution_context: str = ""

    def as_dict(self) -> dict[str, str]:
        """The fields that are known."""
        return {k: v for k, v in attrs.asdict(self).items() if v}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Origin:
        """The origin that *fields* tell of; what is unknown or no text is left out."""
        known = {field.name for field in attrs.fields(cls)}
        return cls(**{k: v for k, v in fields.items() if k in known and isinstance(v, str)})


PERSON = Origin(write_origin="person")


@attrs.frozen
class Operation:
    """One write that is asked for, its content already clean."""

    action: Action
    content: str = ""
    old_text: str = ""

    def as_dict(self) -> dict[str, str]:
        """As the tool takes it."""
        return {k: v for k, v in attrs.asdict(self).items() if v}


@attrs.frozen
class Change:
    """One entry that was written: what a provider is told of it.

    *content* is the entry as it is now, or the entry that was removed.
    """

    action: Action
    target: Target
    content: str
    old_text: str = ""
    previous_content: str = ""
    key: str = ""
    """The same for every attempt to mirror this change; empty where there is one attempt only."""

    def metadata(self, origin: Origin | None = None) -> dict[str, str]:
        """For ``on_memory_write``: what was there before, and where the write came from."""
        own = {
            "old_text": self.old_text,
            "previous_content": self.previous_content,
            "idempotency_key": self.key,
        }
        return {**(origin.as_dict() if origin else {}), **{k: v for k, v in own.items() if v}}


@attrs.frozen
class Entry:
    """One entry of a file as it is shown."""

    id: str
    """Eight letters that stay the same while the text does."""
    target: Target
    text: str
    blocked: str = ""
    """Why the model does not see it; empty for an entry that it sees."""
    origin: Origin | None = None
    time: float | None = None
    """When it was last written, in Unix seconds, where that is known."""


@attrs.frozen
class Usage:
    """How full one half is, in characters."""

    target: Target
    enabled: bool
    entries: int
    used: int
    limit: int
    blocked: int = 0
    problem: str = ""
    """Why the file cannot be read; the figures are then zero and mean nothing."""

    @property
    def percent(self) -> int:
        """Per cent of the limit, rounded down; above 100 where a person wrote more than fits."""
        return self.used * 100 // self.limit

    def __str__(self) -> str:
        return f"{self.percent}% — {self.used:,}/{self.limit:,} chars"


@lru_cache(maxsize=256)
def entry_id(target: Target, text: str) -> str:
    """The id of the entry *text*."""
    return hashlib.sha256(f"{target}\0{text}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
