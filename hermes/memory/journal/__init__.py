"""The journal: nothing a user said is lost between here and the memory provider.

What is named here is imported when it is first asked for: who only looks does not load what delivers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.memory.journal.delivery import Deliverer
    from hermes.memory.journal.journal import Journal
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
    from hermes.memory.journal.view import JournalView, peek

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

_HOMES = {"Deliverer": "delivery", "Journal": "journal", "JournalView": "view", "peek": "view"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'records')}"), name)
