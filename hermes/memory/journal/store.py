"""Where records are kept: on disk, and in memory for as long as the disk refuses. No append raises."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from hermes.database import PATIENCE, Database, is_busy, is_damaged, is_full
from hermes.errors import HermesError, StoreUnavailable
from hermes.memory.journal import moving, salvage, schema
from hermes.memory.journal.encoding import Row
from hermes.memory.journal.groupcommit import GroupCommit
from hermes.memory.journal.records import Recorded

T = TypeVar("T")
Change = Callable[[sqlite3.Connection], T]

TROUBLE = (sqlite3.Error, OSError, HermesError)
NO_FILE = "there is no journal file"
HELD_FROM = 1 << 40
"""Where the places of records in memory begin: whatever lies in the file is older."""


@attrs.define(eq=False)
class Job:
    """One append on its way: the rows it adds, what goes with them, and what came of it."""

    rows: Sequence[Row]
    open_sessions: bool = True
    """Turns among the rows open their session."""
    ledger: bool = False
    """Rows that were ingested before are left out."""
    result: Recorded = attrs.field(factory=lambda: Recorded(durable=False))


class Store:
    """A journal file at *path* (None: memory only), with what it could not take kept in memory, in order.

    *add* writes jobs within a transaction, and counts the new records of each.
    """

    def __init__(
        self,
        path: Path | None,
        add: Callable[[sqlite3.Connection, Sequence[Job]], Sequence[int]],
        *,
        vfs: str | None = None,
    ) -> None:
        self.path = path
        self._add = add
        self.trouble = "" if path else NO_FILE
        self._vfs = vfs
        self._closed = False
        self._start_over()
        _stores.add(self)
        try:
            if path is not None and path.exists():  # the first write makes the file, nothing else does
                self._open()
        except TROUBLE as exc:
            self._note(exc)

    def _start_over(self) -> None:
        self._gate = threading.RLock()  # one writer at a time, and none while what is in memory moves
        self._disk: Database | None = None
        self._had_disk = False
        self._memory = Database(None, create=schema.create) if self.path is None else None
        self._postponed: list[Change[object]] = []
        self._appends = GroupCommit(self._commit)

    # -- writing -----------------------------------------------------------------------------------------

    def append(self, job: Job) -> Recorded:
        """Write *job*, together with those of other threads, durably; to memory where the disk refuses."""
        self._appends.submit(job)
        return job.result

    def change(self, change: Change[int], *, durable: bool = False) -> int:
        """Run *change* where the records are; its number. Raises StoreUnavailable, then nothing was changed."""
        with self._gate:
            number = 0
            if self.path is not None:
                try:
                    number += self._on_disk(change, durable=durable)
                except TROUBLE as exc:
                    self._note(exc)
                    raise StoreUnavailable(self.path, self.trouble) from exc
                finally:
                    if self._closed:
                        self._let_go()
            return number + self._in_memory(change)

    def change_later(self, change: Change[object]) -> bool:
        """Run *change* where the records are, or as soon as the disk allows; whether it ran."""

        def counted(con: sqlite3.Connection) -> int:
            change(con)
            return 1

        with self._gate:
            try:
                self.change(counted)
            except StoreUnavailable:
                self._postponed.append(change)
                self._in_memory(counted)
                return False
        return True

    def catch_up(self) -> bool:
        """Write what is only in memory, if anything is; whether everything is on disk now."""
        if self.path is None or not (self._memory or self._postponed):
            return self.path is not None
        try:
            self.change(_nothing, durable=True)
        except StoreUnavailable:
            return False
        return True

    # -- reading -----------------------------------------------------------------------------------------

    def read(self, query: Callable[[sqlite3.Connection], T]) -> list[T]:
        """The results of *query* for the file and, if there are any, for the records in memory.

        Raises StoreUnavailable if the file is open and cannot be read.
        """
        try:
            disk = self._open() if self.path is not None and self.path.exists() else None
        except TROUBLE as exc:
            self._note(exc)
            disk = None
        found = [] if disk is None else [self._read_disk(disk, query)]
        if self._memory is not None:
            with self._gate:
                if self._memory is not None:
                    found.append(self._memory.read(query))
        return found

    @property
    def disk(self) -> Database | None:
        """The open file, if there is one."""
        return self._disk

    @property
    def memory(self) -> Database | None:
        """The records that are only in memory, if there are any."""
        return self._memory

    def close(self) -> None:
        """Write what can be written, and close. A later append opens the file for itself."""
        if not self._closed:
            self._closed = True
            self.catch_up()
            self._let_go()

    # -- inside ------------------------------------------------------------------------------------------

    def _commit(self, jobs: Sequence[Job]) -> None:
        with self._gate:
            try:
                if self.path is None:
                    self._keep_in_memory(jobs)
                    return
                numbers = self._on_disk(lambda con: self._add(con, jobs), durable=True)
            except TROUBLE as exc:
                self._note(exc)
                self._keep_in_memory(jobs)
            except (
                BaseException
            ):  # a Ctrl-C of the thread that leads: the turns of the others are not its to lose
                self._keep_in_memory(jobs)
                raise
            else:
                for job, number in zip(jobs, numbers, strict=True):
                    job.result = Recorded(durable=True, records=number)
            if self._closed:
                self._let_go()

    def _on_disk(self, change: Change[T], *, durable: bool) -> T:
        """Run *change* on the file, after all that waits for it; repair the file if it turns out damaged."""
        try:
            return self._write(change, durable=durable)
        except sqlite3.DatabaseError as exc:
            if not is_damaged(exc):
                raise
            self._note(exc)
        self._repair()
        return self._write(change, durable=durable)

    def _write(self, change: Change[T], *, durable: bool) -> T:
        waits = bool(self._memory or self._postponed)
        while True:
            disk = self._open()
            assert disk is not None
            try:
                with disk.transaction(
                    durable=durable or waits, patience=0.0 if self.trouble else PATIENCE
                ) as con:
                    for earlier in self._postponed:
                        earlier(con)
                    if self._memory is not None:
                        self._memory.read(lambda held, con=con: moving.move_all(held, con))  # type: ignore[misc]
                    result = change(con)
            except sqlite3.Error as exc:
                moved = disk.moved
                if moved or not (is_busy(exc) or is_full(exc)):
                    self._let_go()
                if not moved:
                    raise
                continue
            if disk.moved:  # damaged, and replaced by another process: this was written to the old one
                self._let_go()
                continue
            self._postponed.clear()
            if self._memory is not None:
                self._memory.close()
                self._memory = None
            self.trouble = ""
            return result

    def _in_memory(self, change: Change[int]) -> int:
        if self._memory is None:
            return 0
        with self._memory.transaction(durable=False) as con:
            return change(con)

    def _keep_in_memory(self, jobs: Iterable[Job]) -> None:
        if self._memory is None:
            self._memory = _held_records()
        for job in jobs:
            try:
                with self._memory.transaction(durable=False) as con:
                    (number,) = self._add(con, [job])
                job.result = Recorded(durable=False, records=number, reason=self.trouble)
            except sqlite3.Error as exc:
                job.result = Recorded(durable=False, reason=f"cannot be kept: {exc}")

    def _read_disk(self, disk: Database, query: Callable[[sqlite3.Connection], T]) -> T:
        assert self.path is not None
        try:
            try:
                return disk.read(query)
            except sqlite3.DatabaseError as exc:
                if not is_damaged(exc):
                    raise
                self._note(exc)
            self._repair()
            mended = self._open()
            assert mended is not None
            return mended.read(query)
        except TROUBLE as exc:
            self._note(exc)
            raise StoreUnavailable(self.path, self.trouble) from exc

    def _repair(self) -> None:
        assert self.path is not None
        with self._gate:
            self._let_go()
            salvage.replace_damaged(self.path, vfs=self._vfs)

    def _open(self) -> Database | None:
        if self._disk is not None or self.path is None:
            return self._disk
        with self._gate:
            if self._disk is None:
                if self._had_disk and not self.path.parent.is_dir():
                    raise FileNotFoundError(f"{self.path.parent} is gone")  # deleted: not to be made again
                try:
                    self._disk = Database(self.path, create=schema.create, vfs=self._vfs)
                except sqlite3.DatabaseError as exc:
                    if not is_damaged(exc):
                        raise
                    salvage.replace_damaged(self.path, vfs=self._vfs)
                    self._disk = Database(self.path, create=schema.create, vfs=self._vfs)
                self._had_disk = True
            return self._disk

    def _let_go(self) -> None:
        with self._gate:
            disk, self._disk = self._disk, None
            if disk is not None:
                try:
                    disk.close()
                except sqlite3.Error as exc:
                    self._note(exc)

    def _note(self, exc: BaseException) -> None:
        self.trouble = str(exc) or type(exc).__name__

    def before_fork(self) -> None:
        """Wait until nothing is under way: a child that inherits half a transaction could harm the file."""
        self._gate.acquire()
        if self._disk is not None:
            self._disk.before_fork()

    def after_fork(self, *, child: bool) -> None:
        """Go on; a child first closes what it inherited: SQLite would take the parent's locks for its own."""
        if self._disk is not None:
            self._disk.after_fork()
        self._gate.release()
        if child:
            self._let_go()
            self._start_over()


def _held_records() -> Database:
    memory = Database(None, create=schema.create)
    with memory.transaction(durable=False) as con:
        con.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('record', ?)", (HELD_FROM,))
    return memory


def _nothing(_con: sqlite3.Connection) -> int:
    return 0


_carried_over_a_fork: list[object] = []


_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_forking: list[Store] = []


def _before_fork() -> None:
    _forking[:] = _stores
    for store in _forking:
        store.before_fork()


def _after_fork(*, child: bool) -> None:
    for store in _forking:
        store.after_fork(child=child)
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )
