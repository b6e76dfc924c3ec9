"""Looking at a journal without touching it: nothing is created, nothing is locked, nothing is delivered."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from hermes.database import is_damaged
from hermes.errors import StoreUnavailable
from hermes.memory.journal import queries, stats
from hermes.memory.journal.records import JournalStats, Record, State
from hermes.memory.journal.salvage import moved_aside


class JournalView:
    """A journal as it was when it was looked at."""

    def __init__(self, path: Path, con: sqlite3.Connection, *, max_size: int, now: float) -> None:
        self._path = path
        self._con = con
        self._max_size = max_size
        self._now = now

    def stats(self) -> JournalStats:
        """Everything that status shows, but for what another process keeps in memory only."""
        size = sum(file.stat().st_size for file in (self._path, Path(f"{self._path}-wal")) if file.exists())
        return stats.summed(
            [stats.Counts.of(self._con, self._now)],
            mode="wal" if _is_wal(self._path) else "rollback",
            size=size,
            over_size=size > self._max_size,
            moved_aside=moved_aside(self._path),
        )

    def records(
        self,
        *,
        state: State | None = None,
        provider: str | None = None,
        session_id: str | None = None,
        limit: int = 100,
        after: int = 0,
    ) -> list[Record]:
        """At most *limit* records with a *seq* above *after*, oldest first."""
        return queries.records(
            self._con, state=state, provider=provider, session_id=session_id, limit=limit, after=after
        )

    def get(self, seq: int) -> Record | None:
        """The record at *seq*."""
        return queries.get(self._con, seq)

    def ingested(self, provider: str, keys: Collection[str]) -> set[str]:
        """Those of *keys* that were ingested for *provider* before."""
        return queries.ingested(self._con, provider, keys)


@contextlib.contextmanager
def peek(path: Path, *, max_size: int = 1 << 30) -> Iterator[JournalView | None]:
    """Look at the journal at *path*; None if there is none. *max_size* in bytes, as in the settings.

    Raises StoreUnavailable if it is there and cannot be read.
    """
    if not path.exists():
        yield None
        return
    with contextlib.ExitStack() as stack:
        try:
            con = _connect(path, stack)
        except (sqlite3.Error, OSError) as exc:
            hint = "it is set aside and salvaged when the profile is next used" if is_damaged(exc) else ""
            raise StoreUnavailable(path, str(exc), next_step=hint) from exc
        if con is None:
            yield None
        else:
            yield JournalView(path, con, max_size=max_size, now=time.time())


def _connect(path: Path, stack: contextlib.ExitStack) -> sqlite3.Connection | None:
    """A connection that only reads, within one snapshot; None for a journal whose tables are not made yet."""
    options = [f"{path.absolute().as_uri()}?mode=ro"]
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if not log.exists() or not log.stat().st_size:
        options.insert(0, f"{options[0]}&immutable=1")  # nobody writes: reading it needs no lock and no index
    elif not index.exists():
        options.clear()  # opening it would make the index
    for option in options:
        try:
            return _begin(option, stack)
        except sqlite3.OperationalError as exc:
            if is_damaged(exc):
                raise
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hermes-journal-")))
    for side in ("", "-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{path}{side}", folder / f"copy.db{side}")
    return _begin((folder / "copy.db").as_uri(), stack)


def _begin(uri: str, stack: contextlib.ExitStack) -> sqlite3.Connection | None:
    con = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5.0)
    try:
        con.execute("BEGIN")
        (tables,) = con.execute("SELECT count(*) FROM sqlite_master WHERE name = 'record'").fetchone()
        if tables:
            con.execute("SELECT 1 FROM record LIMIT 1").fetchone()
    except BaseException:
        con.close()
        raise
    stack.callback(con.close)
    return con if tables else None


def _is_wal(path: Path) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(20)[18:20] == b"\x02\x02"
    except OSError:
        return False
