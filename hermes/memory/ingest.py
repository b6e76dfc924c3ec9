"""Taking conversations in: each message once, however often its file is read and however it has grown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import attrs

from hermes.memory.conversations import Malformed, ReadTurn, Said, turns
from hermes.memory.journal import Recorded

MOST_NAMED = 1000
"""Malformed records that are remembered; of a file full of them the rest is counted."""
BATCH = 500
"""Turns that are written together: one commit each would take most of the time."""


class TakesTurns(Protocol):
    """What of the memory manager is needed here."""

    def sync_many(self, turns: list[ReadTurn]) -> Recorded:
        """Journal *turns* in one step."""


@attrs.define
class Report:
    """What became of the messages that were read."""

    conversations: set[str] = attrs.field(factory=set)
    taken: int = 0
    """Turns that are new."""
    known: int = 0
    """Turns that had been taken in before."""
    malformed: list[Malformed] = attrs.field(factory=list)
    """The first of the records that could not be used."""
    left_out: int = 0
    """How many records could not be used."""
    durable: bool = True


def ingest(
    records: Iterable[Said | Malformed],
    *,
    into: TakesTurns | None,
    known: Callable[[list[str]], set[str]],
    progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Hand every turn of *records* that was not taken in before to the manager *into*, in batches.

    *known* says which of some keys were. Without *into* nothing is handed over: the report says what would be.
    *progress* is called after each batch. What could not be read is in the report, by place and reason.
    """
    report = Report()
    for batch in _batches(turns(_readable(records, report))):
        report.conversations.update(turn.session_id for turn in batch)
        had = known([key for turn in batch for key in turn.prefix_keys])
        new = [fresh for turn in batch if (fresh := _fresh(turn, had)) is not None]
        if new and into is not None:
            report.durable &= into.sync_many(new).durable
        report.taken += len(new)
        report.known += len(batch) - len(new)
        progress(report)
    return report


def _fresh(turn: ReadTurn, had: set[str]) -> ReadTurn | None:
    """*turn* without the messages that were taken in before; None if that leaves nothing."""
    known = max((n for n, key in enumerate(turn.prefix_keys, 1) if key in had), default=0)
    return None if known == len(turn.said) else attrs.evolve(turn, known=known)


def _readable(records: Iterable[Said | Malformed], report: Report) -> Iterator[Said]:
    for record in records:
        if isinstance(record, Malformed):
            report.left_out += 1
            if len(report.malformed) < MOST_NAMED:
                report.malformed.append(record)
        else:
            yield record


def _batches(items: Iterable[ReadTurn]) -> Iterator[list[ReadTurn]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, BATCH)):
        yield batch
