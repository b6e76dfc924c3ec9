"""What a store holds and gives, and what it must be able to do. Nothing here knows of SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

OWNER = "owner"
"""The scope of the person whose profile it is."""
VECTOR_MEMORY = 256 << 20
"""Bytes of vectors that are kept in memory between questions: those of four million messages."""


class Role(IntEnum):
    """Whose words a message holds."""

    USER = 0
    ASSISTANT = 1
    NOTE = 2
    FACT = 3

    @property
    def label(self) -> str:
        """The role as it is shown and exported."""
        return self.name.lower()


class Turn(NamedTuple):
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
    """A stored message as people see it; *target* is ``memory`` or ``user`` for a note, ``fact`` for a fact."""

    id: int
    text: str
    role: Role
    author: str
    time: float
    session_id: str
    scope: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from: session, number of the turn in it, stored message, tool, person; each if known."""

    session_id: str = ""
    turn: int = 0
    message: int = 0
    tool: str = ""
    person: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was remembered on purpose. Times are Unix seconds.

    *ended* is when it stopped to hold, None for one that does: it was corrected by *successor*, or, with
    *successor* 0, it expired. Only what holds is found by a search.
    """

    id: int
    text: str
    scope: str
    created: float
    source: Source = Source()
    used: float = 0.0
    uses: int = 0
    pinned: bool = False
    expires: float | None = None
    ended: float | None = None
    successor: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be kept of turns and notes: seconds, turns, bytes; 0 for any."""

    max_age: float = 0.0
    max_turns: int = 0
    max_bytes: int = 0

    def __bool__(self) -> bool:
        return any((self.max_age, self.max_turns, self.max_bytes))


@dataclass(frozen=True, slots=True)
class Size:
    """How much the scopes of a view hold, and who speaks in them."""

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
    facts: int = 0
    pinned: int = 0
    former_facts: int = 0
    owes_scrub: bool = False
    oldest: float = 0.0


@dataclass(frozen=True, slots=True)
class Embedding:
    """How far the texts of a store have been made into vectors: messages done and waiting, messages per second.

    *problem* says why it does not go on, empty if it does.
    """

    done: int = 0
    waiting: int = 0
    rate: float = 0.0
    problem: str = ""


class Vectors(Protocol):
    """The vectors of one model in the scopes of a view. A vector is what the model's encoder gives."""

    @property
    def calibration(self) -> Any:
        """What was found out about the model when its first vectors were stored."""

    @property
    def related(self) -> float:
        """The cosine from which a text has to do with a question."""

    def nearest(self, vector: Any, limit: int) -> dict[int, float]:
        """The *limit* messages nearest to *vector*, with their cosine."""

    def closeness(self, vector: Any, messages: Sequence[int]) -> dict[int, float]:
        """The cosine of *vector* and those of *messages* that have vectors."""

    def tokens(self, messages: Sequence[int]) -> dict[int, bytes]:
        """The codes of the tokens of those of *messages* that have any."""


class View(Protocol):
    """Some scopes of a store at one moment. Nobody sees another scope's messages through it."""

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

    def vectors(self, model: str) -> Vectors | None:
        """What there is of the vectors of *model*; None for nothing."""


class Store(Protocol):
    """A place for turns. Every call may come from any thread.

    Raises StoreUnavailable where it cannot be reached and PermanentError for what it can never take. A
    *scope* of None is the profile's owner looking at everything; an empty text is a scope like any other.
    """

    def add(self, turns: Sequence[Turn], scope: str) -> int:
        """Store *turns* in one transaction, each key once; how many were new. Durable on return."""

    def note(self, action: str, target: str, content: str, previous: str, scope: str, time: float) -> int:
        """Mirror a change of the built-in memory: ``add``, ``replace``, ``remove``; how many rows changed."""

    def view(self, *scopes: str) -> AbstractContextManager[View | None]:
        """What a search reads; None if nothing is stored for any of *scopes*."""

    def listing(self, scope: str | None, *, session_id: str = "", limit: int = 0) -> Iterator[Record]:
        """Messages, newest first if *limit* is given, else all in order of sessions and places."""

    def records(self, ids: Sequence[int]) -> list[Record]:
        """The messages *ids*, of whatever scope, in that order."""

    def forget(
        self,
        scope: str | None,
        *,
        ids: Sequence[int] = (),
        session_id: str | None = None,
        before: float | None = None,
    ) -> int:
        """Delete what is named, or all, so that no byte stays in any file; how many messages and facts went.

        *ids* are those of messages and of facts, which take with them what they corrected; *before* a time.
        """

    def remember(
        self, text: str, scope: str, time: float, *, source: Source, expires: float | None, pinned: bool
    ) -> tuple[Fact, bool]:
        """Keep a fact; the one that says the same already, if there is one. The flag: it is new."""

    def correct(
        self,
        fact: int,
        text: str,
        scopes: Sequence[str] | None,
        time: float,
        *,
        source: Source,
        expires: float | None,
    ) -> Fact:
        """Let a fact with *text* take the place of *fact*, which ends. Pinned stays pinned.

        Raises EntryNotFound for what is no fact of *scopes*, and, with the text that holds now, for one that
        has ended.
        """

    def mark(
        self,
        fact: int,
        scopes: Sequence[str] | None,
        *,
        pinned: bool | None = None,
        expires: float | None = None,
    ) -> Fact:
        """Pin or unpin *fact*, or set when it expires (0 for never). Raises as ``correct``."""

    def restore(self, fact: Fact) -> tuple[int, bool]:
        """Keep *fact* as it was elsewhere, under an id of this store; that, and whether it is new here."""

    def facts(
        self,
        scopes: Sequence[str] | None,
        *,
        ids: Sequence[int] = (),
        pinned: bool = False,
        former: bool = False,
        limit: int = 0,
    ) -> list[Fact]:
        """Facts, newest first: those that hold, with *former* the others too."""

    def expired(self, now: float) -> set[int]:
        """Ids of facts that are past their time and have not been put away yet."""

    def upkeep(self, now: float, uses: Mapping[int, int], limits: Limits, *, most: int) -> int:
        """Count *uses*, put away what has expired and let go what is beyond *limits*, *most* messages at once.

        How many messages went. A pinned fact does not expire, and facts are never beyond the limits.
        """

    def totals(self) -> Totals:
        """What there is, for status."""

    def optimize(self, now: float, limits: Limits) -> int:
        """Do at once what upkeep does bit by bit, and give space back; how many messages went."""

    def close(self) -> None:
        """Let go of the files."""
