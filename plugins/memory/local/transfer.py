"""What is stored as lines of JSON, and back: taken in twice, it is there once."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hermes.plugins.memory.local import render
from hermes.plugins.memory.local.records import OWNER, Fact, Record, Role, Source, Store, Turn
from hermes.plugins.memory.local.text import storable

BATCH = 2_000
"""Messages that are stored at once."""
OURS = "local"


@dataclass(slots=True)
class Taken:
    """What became of the lines that were taken in; *malformed*: line number and what is wrong with it."""

    messages: int = 0
    facts: int = 0
    known: int = 0
    foreign: int = 0
    malformed: list[tuple[int, str]] = field(default_factory=list)


def records(store: Store, scope: str | None) -> Iterator[dict[str, Any]]:
    """Messages in order of sessions, then facts, oldest first, the former ones too."""
    for record in store.listing(scope):
        if record.role is not Role.FACT:
            yield render.as_dict(record)
    scopes = None if scope is None else [scope]
    yield from map(render.fact_as_dict, reversed(store.facts(scopes, former=True)))


def take_in(store: Store, lines: Iterable[str | bytes]) -> Taken:
    """Store what *lines* hold and *store* does not. Lines of other providers are counted and left out."""
    taken, given, facts = Taken(), _Messages(store), []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            record = None if _foreign(said) else _record(said)
        except (ValueError, TypeError, RecursionError) as exc:
            taken.malformed.append((number, str(exc) or type(exc).__name__))
            continue
        if record is None:
            taken.foreign += 1
        elif isinstance(record, Fact):
            facts.append(record)
        else:
            given.add(record)
    given.flush()
    taken.messages, taken.known = given.added, given.known
    ids: dict[int, int] = {}
    for fact in sorted(facts, key=lambda fact: (-fact.created, -fact.id)):  # what corrected it comes first
        successor = ids.get(fact.successor, 0)
        ids[fact.id], new = store.restore(replace(fact, successor=successor))
        taken.facts += new
        taken.known += not new
    return taken


class _Messages:
    """Messages on their way into a store: whole turns, session by session."""

    def __init__(self, store: Store) -> None:
        self.added = self.known = 0
        self._store = store
        self._waiting: list[Record] = []
        self._seen: dict[tuple[str, str], Counter[tuple[Any, ...]]] = {}

    def add(self, record: Record) -> None:
        """Take *record*; what waits is stored when there is much of it."""
        begins = record.role is not Role.ASSISTANT
        if len(self._waiting) >= BATCH and begins:
            self.flush()
        self._waiting.append(record)

    def flush(self) -> None:
        """Store what waits."""
        waiting, self._waiting = self._waiting, []
        by_scope: dict[str, list[Turn]] = {}
        fresh = [record for record in waiting if self._is_new(record)]
        self.known += len(waiting) - len(fresh)
        for record in fresh:
            if record.role is Role.NOTE:
                self._store.note("add", record.target, record.text, "", record.scope, record.time)
            else:
                _join(by_scope.setdefault(record.scope, []), record)
        for scope, turns in by_scope.items():
            self._store.add(turns, scope)
        self.added += len(fresh)

    def _is_new(self, record: Record) -> bool:
        """Whether the store lacks it. Each that is stored answers for one that is given."""
        session = (record.scope, record.session_id)
        if session not in self._seen:
            if len(self._seen) > 1_000:
                self._seen.clear()
            self._seen[session] = Counter(map(_mark, self._stored(*session)))
        stored = self._seen[session]
        if stored[_mark(record)] > 0:
            stored[_mark(record)] -= 1
            return False
        return True

    def _stored(self, scope: str, session: str) -> Iterator[Record]:
        if session:
            return self._store.listing(scope, session_id=session)
        return (r for r in self._store.listing(scope) if not r.session_id)


def _mark(record: Record) -> tuple[Any, ...]:
    return record.role, record.target, record.time, record.text


def _join(turns: list[Turn], record: Record) -> None:
    """Add *record* to *turns*: an answer to the question that it follows, anything else as a turn of its own."""
    last = turns[-1] if turns else None
    answers = (
        record.role is Role.ASSISTANT
        and last is not None
        and last.user
        and not last.assistant
        and (last.session_id, last.time) == (record.session_id, record.time)
    )
    if answers and last is not None:
        turns[-1] = Turn(last.session_id, last.user, record.text, last.time, last.author)
    elif record.role is Role.ASSISTANT:
        turns.append(Turn(record.session_id, "", record.text, record.time))
    else:
        turns.append(Turn(record.session_id, record.text, "", record.time, record.author))


# -- one line -----------------------------------------------------------------------------------------------


def _foreign(said: Any) -> bool:
    return isinstance(said, Mapping) and said.get("provider", OURS) != OURS


def _record(said: Any) -> Record | Fact:
    """The record that a line holds. Raises ValueError with what is wrong with it."""
    if not isinstance(said, Mapping):
        raise ValueError("expected an object")
    try:
        role = Role[str(said.get("role", "")).upper()]
    except KeyError:
        raise ValueError(f"role is {said.get('role')!r}, expected user, assistant, note or fact") from None
    text, scope = _text(said, "text", required=True), _text(said, "scope") or OWNER
    time, session = _time(said, "time", required=True), _text(said, "session_id")
    if role is Role.FACT:
        return _fact(said, text, scope, time, session)
    target = _text(said, "target", required=True) if role is Role.NOTE else ""
    if target not in ("", "memory", "user"):
        raise ValueError(f"target is {target!r}, expected memory or user")
    return Record(0, text, role, _text(said, "author"), time, "" if target else session, scope, target)


def _fact(said: Mapping[str, Any], text: str, scope: str, time: float, session: str) -> Fact:
    source = Source(session, _count(said, "turn"), 0, _text(said, "tool"), _text(said, "person"))
    return Fact(
        _count(said, "id"), text, scope, time, source,
        used=_time(said, "used"), uses=_count(said, "uses"), pinned=said.get("pinned") is True,
        expires=_time(said, "expires") or None, ended=_time(said, "ended") or None,
        successor=_count(said, "successor"),
    )  # fmt: skip


def _text(said: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    value = said.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise ValueError(f"{name} must be a text" + (" that is not empty" if required else ""))
    return storable(value)


def _time(said: Mapping[str, Any], name: str, *, required: bool = False) -> float:
    value = said.get(name, None if required else 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a time in Unix seconds")
    return float(value)


def _count(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ValueError(f"{name} must be a whole number")
    return value
