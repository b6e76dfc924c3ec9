"""The journal as the one that delivers sees it: what is next, and what became of it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Sequence

import attrs

from hermes.errors import StoreUnavailable
from hermes.memory.journal import queries, sessions, settling
from hermes.memory.journal.journal import Journal
from hermes.memory.journal.owner import Watch
from hermes.memory.journal.queries import Candidate
from hermes.memory.journal.records import DAY, Health, Kind, Record, Sent

BATCH = 256
TOGETHER = 1 << 20
"""Characters that are handed over in one call, as long as it is more than one record."""
ATTEMPTS = 20
"""After so many failures a record holds nothing back that need not wait, and may be set aside."""


class Outbox:
    """Reads raise StoreUnavailable; outcomes never do: what the disk refuses is remembered and written later."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._store = journal.store
        self._watch = Watch()
        self._settled: set[tuple[str, str]] = set()
        self.has_lease = False

    # -- who delivers ------------------------------------------------------------------------------------

    def take_lease(self, now: float, silence: float) -> bool:
        """Whether this process is the one that delivers, from now on or still. *now* is monotonic."""
        owner = self._journal.owner

        def holder(con: sqlite3.Connection) -> bool | None:
            return sessions.lease_is_mine(con, owner, self._watch, now, silence)

        found = self._store.read(holder)
        self.has_lease = self._store.disk is not None
        if not self.has_lease:
            return True  # nobody else can see what is only in memory
        mine = next(iter(found), None)
        if mine is None:
            try:
                mine = bool(
                    self._store.change(lambda con: sessions.take_lease(con, owner, self._watch, now, silence))
                )
            except StoreUnavailable:
                mine = True  # nobody has it, and a disk that refuses must not stop delivery
        return mine

    @property
    def needs_lease(self) -> bool:
        """Whether there is a file now, and was none when the lease was asked for."""
        return not self.has_lease and self._store.disk is not None

    def give_lease_up(self) -> None:
        """Let another process deliver."""
        if self._store.disk is not None:
            self._store.change_later(lambda con: sessions.give_lease_up(con, self._journal.owner))

    # -- upkeep ------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Give a sign of life, for processes that cannot look at this one."""
        self._if_possible(lambda con: sessions.beat(con, self._journal.owner))

    def catch_up(self) -> None:
        """Write what was kept in memory, if the disk takes it."""
        if self._store.catch_up():
            self._settled.clear()

    def end_orphans(self, providers: Collection[str], now: float) -> None:
        """Write down the ends of sessions whose process is gone. *now* is monotonic."""
        journal = self._journal

        def change(con: sqlite3.Connection) -> int:
            ends = sessions.orphans(con, providers, journal.owner, self._watch, now, journal.clock())
            if ends:
                settling.insert(con, ends)
            for row in ends:
                sessions.note_end(con, row.provider, row.session, row.key)
            sessions.sweep_owners(con, journal.owner)
            return len(ends)

        if any(self._store.read(lambda con: sessions.others_open(con, providers, journal.owner))):
            self._if_possible(change, durable=True)

    def purge(self) -> None:
        """Delete what was handed over long ago and confirmed."""
        before = self._journal.clock() - self._journal.keep_handed_over
        self._if_possible(lambda con: settling.purge(con, before))

    def set_old_aside(self, healthy: Collection[str]) -> int:
        """Set aside what is owed for longer than ``max_age``, but what a *healthy* provider is about to get."""
        now = self._journal.clock()
        days = self._journal.max_age / DAY
        reason = f"older than journal.max_age ({days:g} days)"
        number = 0

        def change(con: sqlite3.Connection) -> int:
            nonlocal number
            number = settling.set_old_aside(con, now - self._journal.max_age, healthy, reason, now)
            return number

        self._if_possible(change)
        return number

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file where it has grown large."""
        disk = self._store.disk
        if disk is not None:
            with contextlib.suppress(sqlite3.Error, OSError):  # the next write says what is wrong
                disk.checkpoint()

    def sync(self) -> None:
        """Bring the outcomes to the disk itself, here rather than with the next turn."""
        if self._store.disk is not None:
            self._store.disk.sync_log()

    def _if_possible(self, change: Callable[[sqlite3.Connection], int], *, durable: bool = False) -> None:
        """Run *change* if there is a file that takes it: it is done again later in any case."""
        if self._store.disk is not None:
            with contextlib.suppress(StoreUnavailable):
                self._store.change(change, durable=durable)

    # -- what is next ------------------------------------------------------------------------------------

    def candidates(self, provider: str, without: Collection[str]) -> list[Candidate]:
        """Undelivered records in their order, leaving out the sessions *without*."""
        limit = BATCH + len(self._settled)
        parts = self._store.read(lambda con: queries.candidates(con, provider, without, limit))
        found = [one for one in parts[0] if (provider, one.key) not in self._settled] if parts else []
        if len(parts) > 1:  # what is only in memory comes after what its session has on disk
            names = {one.session for one in parts[1]}
            on_disk = self._store.read(lambda con: queries.sessions_waiting(con, provider, names))[0]
            on_disk -= {session for session in on_disk if not self._any_left(provider, session)}
            found += [one for one in parts[1] if one.session not in on_disk]
        return found

    def load(self, provider: str, candidate: Candidate) -> Record | None:
        """The record, if it is still owed; an end without messages gets the journalled turns of its session."""
        found = self._store.read(lambda con: queries.pending(con, provider, candidate.key))
        record = next((one for one in found if one is not None), None)
        if record is None or record.kind is not Kind.SESSION_END or record.payload.get("messages"):
            return record
        turns = self._journal.transcript(provider, record.session_id, before=record.seq)
        return attrs.evolve(record, payload={**record.payload, "messages": turns})

    def load_more(self, provider: str, first: Record, following: Sequence[Candidate]) -> list[Record]:
        """The turn *first*, and of what follows it the turns that were never tried and may go in one call with it."""
        if self._store.memory is not None:
            return [first]  # the order of what is in memory and what is on disk is that of single records
        keys = [first.key, *(one.key for one in following)]
        found = self._store.read(lambda con: queries.load_pending(con, provider, keys, TOGETHER))
        return found[0] if found and found[0] else [first]

    def held_back_by(self, provider: str, candidate: Candidate) -> str | None:
        """The session that must first switch to that of *candidate*, if one has yet to."""
        settled = [key for name, key in self._settled if name == provider]
        found = self._store.read(
            lambda con: queries.held_back_by(con, provider, candidate, ATTEMPTS, settled)
        )
        return next((session for session in found if session is not None), None)

    # -- outcomes ----------------------------------------------------------------------------------------

    def taken(self, records: Sequence[Record], sent: Sent) -> None:
        """The provider took *records*, all of the same provider: it has stored them, or nobody knows whether."""
        now = self._journal.clock()
        forget: list[str] = []

        def change(con: sqlite3.Connection) -> None:
            forget.clear()
            for record in records:
                text = settling.text_to_forget(con, record)
                if sent is Sent.STORED or text:
                    settling.delivered(con, record, now)
                else:
                    settling.handed_over(con, record, now)
                if text:
                    forget.append(text)
            settling.note_success(con, records[0].provider, now, len(records))

        self._settle(records, change)
        for text in forget:
            with contextlib.suppress(StoreUnavailable):  # the row is gone; its bytes go with the next scrub
                self._journal.scrub(text)

    def dead(self, record: Record, error: str) -> None:
        """*record* can never be taken."""
        now = self._journal.clock()
        self._settle([record], lambda con: settling.dead(con, record, error, now))

    def failed(self, record: Record, error: str, wait: float, health: Health) -> bool:
        """*record* was refused, and is tried again after *wait* seconds; whether it was set aside instead."""
        now = self._journal.clock()
        died = False

        def change(con: sqlite3.Connection) -> None:
            nonlocal died
            settling.failed(con, record, error, now, now + wait)
            settling.note_health(con, record.provider, health)
            if settling.poisoned(con, record, ATTEMPTS):
                settling.dead(con, record, error, now)
                died = True

        self._store.change_later(change)
        return died

    def undelivered(self, providers: Collection[str]) -> int:
        """How many records wait for *providers*."""
        parts = self._store.read(queries.undelivered)
        waiting = sum(part.get(provider, 0) for part in parts for provider in providers)
        return waiting - sum(provider in providers for provider, _ in self._settled)

    def _settle(self, records: Sequence[Record], change: settling.Change) -> None:
        if not self._store.change_later(change):
            self._settled.update((record.provider, record.key) for record in records)

    def _any_left(self, provider: str, session: str) -> bool:
        if not self._settled:
            return True
        keys = self._store.read(lambda con: queries.pending_keys(con, provider, session))[0]
        return any((provider, key) not in self._settled for key in keys)
