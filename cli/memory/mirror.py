"""Telling the memory provider what a person changed in the built-in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.memory.builtin import Change, Origin
    from hermes.memory.manager import MemoryManager

SESSION = "command-line"


def inspect(me: OpenProfile) -> MemoryManager:
    """The manager of *me*, started for a command that looks only: nothing is delivered or created."""
    manager = me.memory_manager()
    manager.initialize_for_inspection(SESSION, platform="cli")
    return manager


def start(me: OpenProfile, session: str = SESSION, *, platform: str = "cli") -> MemoryManager:
    """The manager of *me*, started for a command that writes."""
    manager = me.memory_manager()
    manager.initialize_all(session, platform=platform)
    if me.paths().journal.exists():  # a command is no conversation: nobody is to be told of its end
        me.journal().close_session(manager.external_name, session)
    return manager


def mirror(
    me: OpenProfile, changes: Iterable[Change], *, forget: Sequence[str] = (), origin: Origin | None = None
) -> int:
    """Journal *changes* for the provider and hand them over; how many records it has not taken yet.

    The texts of *forget* leave the journal as well, as soon as the provider has been told.
    """
    from hermes.memory.builtin.values import PERSON
    from hermes.memory.log import scrub as scrub_log

    told = list(changes)
    if not told and not forget:
        return 0
    manager = start(me)
    for change in told:
        manager.on_memory_write(
            change.action, change.target, change.content, metadata=change.metadata(origin or PERSON)
        )
    for text in forget:
        me.journal().scrub(text)
        scrub_log(me.paths().logs, text)
    manager.flush_pending(me.settings().memory.timeouts.hook)
    return me.journal().stats().undelivered
