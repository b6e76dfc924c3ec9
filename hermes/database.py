"""One SQLite file that survives: private from birth, patient with other processes, one writer here at a time."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

from hermes.files import private_dir
from hermes.locks import PRIVATE_FILE, give_to_owner_of

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds to wait for the writer of another process."""
CHECKPOINT_BYTES = 4 << 20

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_POLL = 0.001


def is_busy(exc: BaseException) -> bool:
    """Whether another process has the file locked."""
    return _primary_code(exc) in _BUSY


def is_damaged(exc: BaseException) -> bool:
    """Whether the content of the file makes no sense to SQLite."""
    return _primary_code(exc) in _DAMAGED


def is_full(exc: BaseException) -> bool:
    """Whether there is no room on the disk."""
    return _primary_code(exc) == sqlite3.SQLITE_FULL


class Database:
    """A database in a file, or one in memory where *path* is None. Raises sqlite3.Error and OSError.

    ``WAL`` where the file system takes it; ``mode`` says which it became. *create* makes the tables that are
    missing; *vfs* names another file layer of SQLite.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        create: Callable[[sqlite3.Connection], None],
        vfs: str | None = None,
    ) -> None:
        self.path = path
        self.vfs = vfs
        self._create_tables = create
        self._lock = threading.Lock()
        self._full: bool | None = None
        self._wal = Path(f"{path}-wal")
        if path is not None:
            _create(path)
        self._con = self._connect()
        try:
            self.mode: Literal["wal", "rollback", "memory"] = self._set_up()
            self._identity = _identity(path) if path else None
        except BaseException:
            self._con.close()
            raise

    def close(self) -> None:
        """Close the file; the last process to do so folds the write-ahead log into it."""
        with self._lock:
            self._con.close()

    @property
    def moved(self) -> bool:
        """Whether another file, or none, stands where this one was opened."""
        return self.path is not None and _identity(self.path) != self._identity

    @contextlib.contextmanager
    def transaction(self, *, durable: bool, patience: float = PATIENCE) -> Iterator[sqlite3.Connection]:
        """A write transaction: all of the block or nothing. *durable*: on the disk itself when it returns.

        What is not durable survives the process, not a loss of power. *patience*: seconds to wait for
        another process.
        """
        with self._lock:
            con = self._con
            self._set_durable(durable or self.mode == "rollback")
            patiently(lambda: con.execute("BEGIN IMMEDIATE"), patience)
            try:
                yield con
                patiently(lambda: con.execute("COMMIT"), patience)
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite has rolled back by itself
                    con.execute("ROLLBACK")
                raise
            self._set_durable(True)  # here, rather than within the next turn

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The result of *query*, which must not write."""
        with self._lock:
            return patiently(lambda: query(self._con), PATIENCE)

    def checkpoint(self) -> None:
        """Fold a large write-ahead log into the file, on a connection of its own so that no append waits."""
        if self.mode != "wal" or not self._wal.exists() or self._wal.stat().st_size < CHECKPOINT_BYTES:
            return
        with contextlib.closing(self._connect()) as con:
            con.execute("PRAGMA secure_delete = ON")
            con.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def sync_log(self) -> None:
        """Put on the disk itself what was written without waiting for it, so that no append has to."""
        if self.mode != "wal" or self._full or not hasattr(os, "fdatasync"):
            return
        with contextlib.suppress(OSError):  # the next durable write says what is wrong
            fd = os.open(self._wal, os.O_RDONLY)
            try:
                os.fdatasync(fd)  # no lock of SQLite lies on this file: closing it gives none up
            finally:
                os.close(fd)

    def truncate_log(self, patience: float = PATIENCE) -> bool:
        """Fold the whole write-ahead log in and empty it; False if a reader of another process kept it."""
        if self.mode != "wal":
            return True
        end = time.monotonic() + patience
        while True:
            with self._lock:
                row = self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not row[0] or time.monotonic() > end:
                return not row[0]
            time.sleep(_POLL)

    def vacuum(self) -> None:
        """Write the file anew, so that no remainder of a deleted row is left in it."""
        with self._lock:
            patiently(lambda: self._con.execute("VACUUM"), PATIENCE)

    def before_fork(self) -> None:
        """Wait until no call is under way."""
        self._lock.acquire()

    def after_fork(self) -> None:
        """Go on, in the parent and in the child."""
        self._lock.release()

    def size(self) -> int:
        """Bytes on disk, the write-ahead log included."""
        if self.path is None:
            return 0
        return sum(p.stat().st_size for p in (self.path, self._wal) if p.exists())

    def _connect(self) -> sqlite3.Connection:
        where = ":memory:" if self.path is None else f"{self.path.absolute().as_uri()}?mode=rw"
        if self.vfs:
            where += f"&vfs={self.vfs}"
        return sqlite3.connect(where, timeout=0, isolation_level=None, check_same_thread=False, uri=True)

    def _set_up(self) -> Literal["wal", "rollback", "memory"]:
        con = self._con
        con.execute("PRAGMA secure_delete = ON")
        if self.path is None:
            self._create_tables(con)
            return "memory"
        mode = patiently(lambda: _ask_for_wal(con), PATIENCE)
        con.execute("PRAGMA wal_autocheckpoint = 1000")  # a safety net: see checkpoint()
        con.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_BYTES}")
        patiently(lambda: self._create_tables(con), PATIENCE)
        return mode

    def _set_durable(self, full: bool) -> None:
        if full != self._full:
            self._con.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
            self._full = full


def patiently(action: Callable[[], T], patience: float) -> T:
    """The result of *action*, tried again while another process has the file locked.

    SQLite's own waiting sleeps up to 100 ms at a time: with several writers some would starve.
    """
    end = 0.0
    while True:
        try:
            return action()
        except sqlite3.OperationalError as exc:
            now = time.monotonic()
            end = end or now + patience
            if not is_busy(exc) or now >= end:
                raise
        time.sleep(_POLL * (0.2 + random.random()))  # noqa: S311 - to spread the waiters


def _ask_for_wal(con: sqlite3.Connection) -> Literal["wal", "rollback"]:
    try:
        (mode,) = con.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as exc:
        if (
            is_busy(exc)
            or is_damaged(exc)
            or _primary_code(exc) in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
        ):
            raise
        mode = "delete"  # no shared memory on this file system
        con.execute("PRAGMA journal_mode = DELETE")
    return "wal" if mode == "wal" else "rollback"


def _create(path: Path) -> None:
    private_dir(path.parent)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        mode = path.stat().st_mode
        if os.name == "posix" and mode & 0o077 and mode & 0o170000 == 0o100000:
            with contextlib.suppress(PermissionError):  # somebody else's file
                path.chmod(PRIVATE_FILE)
        return
    os.close(fd)
    give_to_owner_of(path.parent, path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = os.stat(path)  # noqa: PTH116 - called for every commit
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _primary_code(exc: BaseException) -> int:
    return int(getattr(exc, "sqlite_errorcode", 0) or 0) & 0xFF
