"""The journal of one profile: what is owed to memory providers, written down before anything is delivered."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.memory.journal import queries, sessions, settling, stats
from hermes.memory.journal.adding import Adding
from hermes.memory.journal.encoding import to_row
from hermes.memory.journal.owner import Owner
from hermes.memory.journal.records import DAY, Entry, JournalStats, Record, Recorded, Scrubbed, State
from hermes.memory.journal.scrub import scrub
from hermes.memory.journal.store import Job, Store
from hermes.memory.latency import HookStats

BATCH = 2000
"""Entries per transaction: a larger append would make the write-ahead log grow without bound."""


class Journal:
    """What is owed to providers, at *path*; None keeps it in memory.

    *max_age*: seconds after which an undelivered record is set aside. *max_size*: bytes above which
    ``stats`` warns. *keep_handed_over*: seconds for which an accepted record is kept once it is confirmed.
    Opening never fails: where the disk refuses, ``stats().trouble`` says why, records are kept in memory and
    written when that is over.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        max_age: float = 30 * DAY,
        max_size: int = 1 << 30,
        keep_handed_over: float = 7 * DAY,
        clock: Callable[[], float] = time.time,
        owner: Owner | None = None,
        vfs: str | None = None,
    ) -> None:
        self.max_age = max_age
        self.max_size = max_size
        self.keep_handed_over = keep_handed_over
        self.clock = clock
        self._owner = owner or Owner.here()
        self._is_given = owner is not None
        self.store = Store(path, Adding(lambda: self.owner, clock), vfs=vfs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def owner(self) -> Owner:
        """This opener of the journal, in this process: a forked child is another."""
        if self._owner.pid != os.getpid() and not self._is_given:
            self._owner = Owner.here()
        return self._owner

    @property
    def path(self) -> Path | None:
        """The file, or None."""
        return self.store.path

    def close(self) -> None:
        """Write what was kept in memory, if the disk takes it now, and close the file."""
        if self.store.disk is not None:
            self.store.change_later(lambda con: sessions.leave(con, self.owner))
        self.store.close()

    # -- writing -----------------------------------------------------------------------------------------

    def append(
        self, entries: Sequence[Entry], *, open_sessions: bool = True, ledger: bool = False
    ) -> Recorded:
        """Write *entries* down, on disk when it returns; never raises for trouble with the disk.

        An entry whose key its provider has already is left out. *open_sessions*: a turn opens its session, to
        which an end is owed. *ledger*: leave out what was ingested before, and note what is new.
        """
        durable, number, reason = True, 0, ""
        for start in range(0, len(entries), BATCH):
            now = self.clock()
            rows = [to_row(entry, now) for entry in entries[start : start + BATCH]]
            done = self.store.append(Job(rows, open_sessions, ledger))
            if len(entries) <= BATCH:
                return done
            durable, number, reason = durable and done.durable, number + done.records, reason or done.reason
        return Recorded(durable, number, reason)

    def ingested(self, provider: str, keys: Collection[str]) -> set[str]:
        """Those of *keys* that were ingested for *provider* before."""
        return set().union(*self.store.read(lambda con: queries.ingested(con, provider, keys)))

    def clear_ledger(self, provider: str) -> int:
        """Forget what was ingested for *provider*, so that it can be again; how many entries."""
        return self.store.change(
            lambda con: con.execute("DELETE FROM ingested WHERE provider = ?", (provider,)).rowcount
        )

    def add_hooks(self, provider: str, calls: Mapping[str, HookStats]) -> None:
        """Add *calls*, by hook, to what status shows of *provider*."""
        self.store.change_later(lambda con: settling.add_hooks(con, provider, calls, self.clock()))

    # -- sessions ----------------------------------------------------------------------------------------

    def open_session(self, provider: str, session_id: str, *, linger: float = 0.0) -> None:
        """An end is owed for *session_id*; whoever had it open has it no longer.

        *linger*: seconds for which it stays open after this process has gone.
        """
        now = self.clock()
        until = now + linger if linger else 0.0
        self.store.change_later(
            lambda con: sessions.open_sessions(con, [(provider, session_id)], self.owner, now, until)
        )

    def continue_session(self, provider: str, old: str, new: str) -> None:
        """*old* goes on as *new*: its turns belong to the end of *new*, and no end is owed for *old*."""
        now = self.clock()
        self.store.change_later(
            lambda con: sessions.continue_session(con, provider, old, new, self.owner, now)
        )

    def close_session(self, provider: str, session_id: str) -> None:
        """No end is owed for *session_id*."""
        self.store.change_later(lambda con: sessions.close_session(con, provider, session_id))

    def confirm(self, provider: str, session_id: str) -> None:
        """*provider*, which only accepts, has shut down cleanly after *session_id*."""
        self.store.change_later(lambda con: settling.confirm(con, provider, session_id))

    def transcript(
        self, provider: str, session_id: str, *, before: int | None = None
    ) -> list[dict[str, str]]:
        """The journalled turns of *session_id* as messages, those of sessions it took over from first.

        *before*: only what was written down before the record at that place.
        """
        parts = self.store.read(lambda con: queries.transcript(con, provider, session_id, before))
        return [message for part in parts for message in part]

    # -- the person's side -------------------------------------------------------------------------------

    def stats(self) -> JournalStats:
        """The journal as it is now."""
        return stats.of_store(self.store, self.clock(), self.max_size)

    def records(
        self,
        *,
        state: State | None = None,
        provider: str | None = None,
        session_id: str | None = None,
        limit: int = 100,
        after: int = 0,
    ) -> list[Record]:
        """At most *limit* records with a *seq* above *after*, oldest first. Raises StoreUnavailable."""
        parts = self.store.read(
            lambda con: queries.records(
                con, state=state, provider=provider, session_id=session_id, limit=limit, after=after
            )
        )
        return [record for part in parts for record in part][:limit]

    def get(self, seq: int) -> Record | None:
        """The record at *seq*. Raises StoreUnavailable."""
        return next((found for found in self.store.read(lambda con: queries.get(con, seq)) if found), None)

    def retry(self, seqs: Sequence[int] | None = None) -> int:
        """Dead letters (those at *seqs*, or all) are owed again; how many. Raises StoreUnavailable."""
        return self._owed_again(State.DEAD, seqs)

    def redeliver(self, seqs: Sequence[int] | None = None) -> int:
        """Records handed over and not confirmed (at *seqs*, or all) are owed again. Raises StoreUnavailable."""
        return self._owed_again(State.HANDED_OVER, seqs)

    def drop(self, seqs: Sequence[int]) -> int:
        """Delete the records at *seqs*, never to be delivered; how many. Raises StoreUnavailable."""
        return self.store.change(lambda con: settling.drop(con, seqs), durable=True)

    def scrub(self, text: str) -> Scrubbed:
        """Forget *text*: no byte of it is left in the journal, but where the provider must still be told."""
        return scrub(self.store, text)

    def _owed_again(self, state: State, seqs: Sequence[int] | None) -> int:
        now = self.clock()
        return self.store.change(lambda con: settling.to_pending(con, state, seqs, now), durable=True)
