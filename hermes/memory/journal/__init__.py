"""The journal: nothing a user said is lost between here and the memory provider."""

from hermes.memory.journal.delivery import Deliverer
from hermes.memory.journal.journal import Journal
from hermes.memory.journal.peek import JournalView, peek
from hermes.memory.journal.records import (
    DrainState,
    Entry,
    Health,
    JournalStats,
    Kind,
    Record,
    Recorded,
    Scrubbed,
    Sent,
    State,
)

__all__ = [
    "Deliverer",
    "DrainState",
    "Entry",
    "Health",
    "Journal",
    "JournalStats",
    "JournalView",
    "Kind",
    "Record",
    "Recorded",
    "Scrubbed",
    "Sent",
    "State",
    "peek",
]
