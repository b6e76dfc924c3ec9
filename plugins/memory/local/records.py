"""What a store holds and gives, and what it must be able to do. Nothing here knows of SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

OWNER = "owner"
"""The scope of the person whose profile it is."""


class Role(IntEnum):
    """Whose words a message holds."""

    USER = 0
    ASSISTANT = 1
    NOTE = 2

    @property
    def label(self) -> str:
        """The role as it is shown and exported."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Turn:
    """One completed turn, to be stored; *time* is Unix seconds, an empty *key* means never seen before."""

    session_id: str
    user: str
    assistant: str
    time: float
    author: str = ""
    key: str = ""


@dataclass(slots=True)
class Candidate:
    """A stored message as the ranking sees it: terms, not text.

    *place* counts within *session*; two candidates of one session are neighbours if their places are.
    """

    id: int
    session: int
    place: int
    role: int
    author: str
    time: float
    terms: str
    holds: int = 0
    """Which terms of the question the search found in it, a bit each; the ranking looks how often."""


@dataclass(frozen=True, slots=True)
class Record:
    """A stored message as people see it; *target* is ``memory`` or ``user`` for a note, else empty."""

    id: int
    text: str
    role: Role
    author: str
    time: float
    session_id: str
    scope: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """How much one scope holds, and who speaks in it (author -> as written)."""

    messages: int
    terms: int
    authors: tuple[str, ...]

    @property
    def mean_terms(self) -> float:
        """Terms in an average message; never 0."""
        return max(1.0, self.terms / max(1, self.messages))


@dataclass(frozen=True, slots=True)
class Postings:
    """Ids of the newest messages that hold a term, and how many hold it in all (roughly, if more)."""

    ids: list[int]
    total: int


@dataclass(frozen=True, slots=True)
class Totals:
    """What status shows of a whole store; times are Unix seconds, 0 for never."""

    turns: int = 0
    messages: int = 0
    notes: int = 0
    sessions: int = 0
    people: int = 0
    last_write: float = 0.0
    bytes: int = 0
    journal_mode: str = ""


class View(Protocol):
    """One scope of a store at one moment. Nobody sees another scope's messages through it."""

    size: Size

    def postings(self, term: str, limit: int, *, prefix: bool = False) -> Postings:
        """At most *limit* messages with *term* (with *prefix*: as a beginning), newest sessions first."""

    def candidates(self, ids: Sequence[int], around: int = 0) -> list[Candidate]:
        """The messages *ids*, with the *around* places before and after each in its session."""

    def sessions_named(self, names: Sequence[str]) -> set[int]:
        """The numbers, as ``Candidate.session`` has them, of the sessions called *names*."""

    def session_of(self, message: int) -> int:
        """The number of the session that holds the message with that id."""

    def between(self, start: float, end: float, limit: int) -> list[int]:
        """Ids of messages said from *start* up to *end*, newest sessions first."""

    def records(self, ids: Sequence[int]) -> list[Record]:
        """The messages *ids*, in that order."""


class Store(Protocol):
    """A place for turns. Every call may come from any thread.

    Raises StoreUnavailable where it cannot be reached and PermanentError for what it can never take. A
    *scope* of None is the profile's owner looking at everything; an empty text is a scope like any other.
    """

    def add(self, turns: Sequence[Turn], scope: str) -> int:
        """Store *turns* in one transaction, each key once; how many were new. Durable on return."""

    def note(self, action: str, target: str, content: str, previous: str, scope: str, time: float) -> int:
        """Mirror a change of the built-in memory: ``add``, ``replace``, ``remove``; how many rows changed."""

    def view(self, scope: str) -> AbstractContextManager[View | None]:
        """What a search reads; None if nothing is stored for *scope*."""

    def listing(self, scope: str | None, *, session_id: str = "", limit: int = 0) -> Iterator[Record]:
        """Messages, newest first if *limit* is given, else all in order of sessions and places."""

    def forget(self, scope: str | None, *, ids: Sequence[int] = (), session_id: str | None = None) -> int:
        """Delete those messages, or all of them, so that no byte stays in any file; how many went."""

    def totals(self) -> Totals:
        """What there is, for status."""

    def close(self) -> None:
        """Let go of the files."""
