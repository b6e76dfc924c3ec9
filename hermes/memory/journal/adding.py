"""How rows come in: those of many callers in one statement, with the sessions that they open or end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from hermes.memory.journal import sessions, settling
from hermes.memory.journal.encoding import load
from hermes.memory.journal.owner import Owner
from hermes.memory.journal.records import Kind
from hermes.memory.journal.store import Job


class Adding:
    """Writes jobs within a transaction, on behalf of *owner*, looked up for each."""

    def __init__(self, owner: Callable[[], Owner], clock: Callable[[], float]) -> None:
        self._owner = owner
        self._clock = clock

    def __call__(self, con: sqlite3.Connection, jobs: Sequence[Job]) -> list[int]:
        """Add the rows of *jobs*; how many of each were new."""
        numbers = self._insert(con, jobs)
        opened: dict[tuple[str, str], None] = {}
        for job in jobs:
            if job.open_sessions:
                self._note_sessions(con, job, opened)
        sessions.open_sessions(con, opened, self._owner(), self._clock())
        return numbers

    def _insert(self, con: sqlite3.Connection, jobs: Sequence[Job]) -> list[int]:
        if len(jobs) > 1 and not any(job.ledger for job in jobs):
            con.execute("SAVEPOINT together")
            rows = [row for job in jobs for row in job.rows]
            if settling.insert(con, rows) == len(rows):
                con.execute("RELEASE together")
                return [len(job.rows) for job in jobs]
            con.execute("ROLLBACK TO together")  # a key is there already: whose was it?
            con.execute("RELEASE together")
        return [(settling.insert_new if job.ledger else settling.insert)(con, job.rows) for job in jobs]

    def _note_sessions(self, con: sqlite3.Connection, job: Job, opened: dict[tuple[str, str], None]) -> None:
        for row in job.rows:
            name = (row.provider, row.session)
            if row.kind == Kind.TURN:
                opened[name] = None
            elif row.kind == Kind.SESSION_SWITCH and load(row.payload).get("rewound"):
                settling.take_back(con, row.provider, row.session, row.key)
            elif row.kind == Kind.SESSION_END:
                if opened:  # in the order in which it was said
                    sessions.open_sessions(con, opened, self._owner(), self._clock())
                    opened.clear()
                sessions.note_end(con, row.provider, row.session, row.key)
