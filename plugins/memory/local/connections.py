"""Connections to one SQLite file, for threads and processes: waiting, journal mode, clear errors."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from hermes.errors import StoreUnavailable
from hermes.files import private_dir
from hermes.plugins.memory.local import schema

log = logging.getLogger(__name__)

BUSY_SECONDS = 30.0
"""How long a write waits for other processes before it says that it could not."""
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "fuse.sshfs", "afs", "ncpfs"})
_PRAGMAS = ("synchronous = FULL", "secure_delete = ON", "cache_size = -16000", "temp_store = MEMORY")
_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Connections:
    """One writing connection and as many reading ones as there are readers at once."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS, vfs: str = "") -> None:
        self.path = path
        self.journal_mode = ""
        self._busy = busy_seconds
        self._vfs = vfs
        self._write_lock = threading.Lock()
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._idle: list[sqlite3.Connection] = []
        self._file: tuple[int, int, int] | None = None
        self._writer_file: tuple[int, int, int] | None = None

    @contextlib.contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock of the file; made with its folder if it is missing."""
        with self._write_lock, self._clear_errors():
            db = self._writing()
            self._begin(db)
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a transaction left open would lock out every other writer
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection | None]:
        """A connection for reading, or None if there is nothing stored yet. Creates nothing."""
        db = self._reading()
        if db is None:
            yield None
            return
        with self._clear_errors():
            try:
                yield db
            finally:
                self._give_back(db)

    def scrub(self, seconds: float = 10.0) -> bool:
        """Empty the write-ahead log, so that no deleted byte stays there; False if a reader held it.

        What is not done within *seconds* is done when the file is next opened for writing.
        """
        with self._write_lock, self._clear_errors():
            db = self._writing()
            deadline = time.monotonic() + seconds
            while not self._empty_log(db):
                if time.monotonic() > deadline:
                    return False
            schema.scrubbed(db)
            return True

    def compact(self) -> None:
        """Write the file anew without its holes; what others read or write meanwhile waits."""
        with self._write_lock, self._clear_errors():
            self._writing().execute("VACUUM")

    def _empty_log(self, db: sqlite3.Connection) -> bool:
        """Try for a moment to empty the write-ahead log; False if a reader holds it."""
        db.execute("PRAGMA busy_timeout = 100")
        try:
            return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            db.execute(f"PRAGMA busy_timeout = {int(self._busy * 1000)}")

    def close(self) -> None:
        """Close every connection; the next use opens anew."""
        with self._lock:
            idle, self._idle, self._file = self._idle, [], None
        with self._write_lock:
            writer, self._writer = self._writer, None
        for db in [*idle, writer]:
            if db is not None:
                db.close()

    # -- opening -----------------------------------------------------------------------------------------

    def _writing(self) -> sqlite3.Connection:
        if self._writer is not None and self._drop_if_changed(self._writer_file, [self._writer]):
            self._writer = None
        if self._writer is None:
            private_dir(self.path.parent)
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600))
            except OSError as exc:
                raise StoreUnavailable(self.path, exc.strerror or str(exc)) from exc
            db = self._open("rw")
            try:
                self._choose_journal(db)
                schema.bring_up_to_date(db, self.path)
                if schema.owes_scrub(db) and self._empty_log(db):
                    schema.scrubbed(db)
            except BaseException:
                db.close()
                raise
            self._writer_file = self._identity()
            self._writer = db
        return self._writer

    def _reading(self) -> sqlite3.Connection | None:
        with self._lock:
            if self._drop_if_changed(self._file, self._idle):
                self._idle, self._file = [], None
            if self._idle:
                return self._idle.pop()
        try:
            if self.path.stat().st_size == 0:
                return None
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise StoreUnavailable(self.path, exc.strerror or str(exc)) from exc
        with self._clear_errors():
            try:
                db, ready = self._open_to_read("rw")
            except sqlite3.OperationalError as exc:
                if _is_busy(exc) or self._log_holds_something():
                    raise
                # a disk that is full or read-only: with nothing in the log, the file itself is all there is
                db, ready = self._open_to_read("ro&immutable=1")
        if not ready:
            db.close()
            return self._reading_after_migration()
        if self._file is None:
            self._file = self._identity()
        return db

    def _open_to_read(self, mode: str) -> tuple[sqlite3.Connection, bool]:
        db = self._open(mode)
        try:
            ready = schema.check(db, self.path)
            self.journal_mode = db.execute("PRAGMA journal_mode").fetchone()[0]
            db.execute("PRAGMA query_only = ON")
        except BaseException:
            db.close()
            raise
        return db, ready

    def _log_holds_something(self) -> bool:
        log_file = Path(f"{self.path}-wal")
        return log_file.exists() and log_file.stat().st_size > 0

    def _reading_after_migration(self) -> sqlite3.Connection | None:
        with self._clear_errors(), contextlib.closing(self._open("rw")) as db:
            if not schema.is_empty(db):
                schema.bring_up_to_date(db, self.path)
                return self._reading()
        return None

    def _open(self, mode: str) -> sqlite3.Connection:
        options = f"mode={mode}" + (f"&vfs={self._vfs}" if self._vfs else "")
        db = sqlite3.connect(
            f"file:{quote(str(self.path))}?{options}",
            uri=True, timeout=self._busy, isolation_level=None, check_same_thread=False, cached_statements=64,
        )  # fmt: skip
        try:
            for pragma in _PRAGMAS:
                db.execute(f"PRAGMA {pragma}")
        except BaseException:
            db.close()
            raise
        return db

    def _choose_journal(self, db: sqlite3.Connection) -> None:
        """WAL where the file system can do it, else a rollback journal, which status then shows."""
        network = file_system(self.path) in _NETWORK
        self.journal_mode = self._patiently(db, f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}")
        if self.journal_mode != "wal":
            self.journal_mode = self._patiently(db, "PRAGMA journal_mode = DELETE")
            log.warning(
                "%s: no write-ahead log on this file system; writers and readers wait for one another",
                self.path,
            )

    def _patiently(self, db: sqlite3.Connection, pragma: str) -> str:
        """Run *pragma*; unlike statements, a change of journal mode does not wait for other processes."""
        deadline = time.monotonic() + self._busy
        while True:
            try:
                return str(db.execute(pragma).fetchone()[0])
            except sqlite3.OperationalError as exc:
                if not _is_busy(exc) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _begin(self, db: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._busy
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as exc:
                if not _is_busy(exc) or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._lock:
            if len(self._idle) < 4 and self._file is not None:
                self._idle.append(db)
                return
        db.close()

    # -- what may have happened meanwhile -----------------------------------------------------------------

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            facts = self.path.stat()
        except OSError:
            return None
        return os.getpid(), facts.st_dev, facts.st_ino

    def _drop_if_changed(
        self, opened: tuple[int, int, int] | None, connections: list[sqlite3.Connection]
    ) -> bool:
        """Let go of *connections* to a file that was removed or replaced since, or that came with a fork."""
        if opened is None or opened == (now := self._identity()):
            return False
        if now is not None and now[0] != opened[0]:
            _INHERITED.extend(connections)  # closing them here would drop the parent's locks
        else:
            for db in connections:
                db.close()
        return True

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            if _is_busy(exc):
                reason, step = f"other processes kept it busy for {self._busy:.0f} s", "try again"
            elif isinstance(exc, sqlite3.DatabaseError) and not isinstance(exc, sqlite3.OperationalError):
                reason, step = (
                    f"is damaged or no store ({exc})",
                    f"move {self.path} away, or bring back a backup",
                )
            else:
                reason, step = str(exc), ""
            raise StoreUnavailable(self.path, reason, next_step=step) from exc


_INHERITED: list[sqlite3.Connection] = []


def _is_busy(exc: sqlite3.Error) -> bool:
    return (getattr(exc, "sqlite_errorcode", 0) & 0xFF) in _BUSY_CODES


def file_system(path: Path) -> str:
    """The type of the file system that holds *path*, or "" where the system does not say."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    where = os.path.realpath(path)
    best, found = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4].replace("\\040", " ")
        if len(point) > best and (where == point or where.startswith(point.rstrip("/") + "/")):
            best, found = len(point), right.split(" ")[0]
    return found
