"""A damaged journal: moved aside, never deleted; what can be read of it goes into a new one."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hermes.database import Database, is_damaged
from hermes.files import locked, sync_folder
from hermes.locks import PRIVATE_FILE, give_to_owner_of
from hermes.memory.journal import schema

SUFFIX = ".damaged-"
TABLES = ("record", "session", "owner", "health", "ingested", "hook")
_SIDES = ("", "-wal", "-shm")
_WORK = ".journal-salvage-"
_GAP = 4096
"""How many records in a row may be unreadable before the rest is given up."""


def moved_aside(path: Path) -> tuple[Path, ...]:
    """The damaged journals that were kept beside *path*."""
    try:
        found = sorted(path.parent.glob(f"{path.name}{SUFFIX}*"))
    except OSError:
        return ()  # a folder that cannot be listed; what is open goes on
    return tuple(one for one in found if not one.name.endswith(("-wal", "-shm")))


def replace_damaged(path: Path, *, vfs: str | None = None) -> None:
    """Move the journal at *path* aside and put a new one in its place, with what could be read of the old.

    Another process may have done so meanwhile: a journal that opens is left alone. Raises OSError,
    sqlite3.Error, or StoreUnavailable where the lock cannot be had.
    """
    with locked(path):
        if _is_sound(path, vfs):
            return
        aside = _move_aside(
            path
        )  # first: whoever still writes to it notices, and writes again to the new one
        fresh = path.with_name(f".{path.name}.new")
        try:
            remove_leftovers(path)
            Database(fresh, create=schema.create, vfs=vfs).close()
            _copy_what_can_be_read(aside, fresh)
        except BaseException:
            _remove(fresh)
            _move(aside, path)  # it is tried again when there is room
            raise
        fresh.replace(path)
        sync_folder(path.parent)


def _is_sound(path: Path, vfs: str | None) -> bool:
    try:
        database = Database(path, create=schema.create, vfs=vfs)
    except sqlite3.DatabaseError as exc:
        if is_damaged(exc):
            return False
        raise
    try:
        return bool(database.read(lambda con: con.execute("PRAGMA quick_check(1)").fetchone()) == ("ok",))
    except sqlite3.DatabaseError as exc:
        if is_damaged(exc):
            return False
        raise
    finally:
        with contextlib.suppress(sqlite3.Error):
            database.close()


def _move_aside(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    number = 0
    while True:
        aside = path.with_name(f"{path.name}{SUFFIX}{stamp}{f'-{number}' if number else ''}")
        if not aside.exists():
            break
        number += 1
    _move(path, aside)
    return aside


def _move(path: Path, to: Path) -> None:
    if to.exists():
        return
    for side in reversed(_SIDES):  # the file itself last: without it the rest says nothing
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{side}").rename(f"{to}{side}")


def remove_leftovers(path: Path) -> None:
    """Delete what a process that died while salvaging left behind. The caller holds the lock of *path*."""
    _remove(path.with_name(f".{path.name}.new"))
    for folder in path.parent.glob(f"{_WORK}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _remove(path: Path) -> None:
    for side in _SIDES:
        Path(f"{path}{side}").unlink(missing_ok=True)


def _copy_what_can_be_read(aside: Path, fresh: Path) -> None:
    """Read a copy of *aside* as it is, then once more with its first page made anew."""
    with tempfile.TemporaryDirectory(dir=aside.parent, prefix=_WORK) as folder:
        copy = Path(folder) / "copy.db"
        for side in ("", "-wal"):
            if Path(f"{aside}{side}").exists():
                shutil.copyfile(f"{aside}{side}", f"{copy}{side}")
                Path(f"{copy}{side}").chmod(PRIVATE_FILE)
        with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as target:
            target.execute("PRAGMA secure_delete = ON")
            _merge(copy, target)
            if _with_new_first_page(copy):
                _merge(copy, target)
    give_to_owner_of(aside.parent, fresh)


def _merge(source: Path, target: sqlite3.Connection) -> None:
    with contextlib.closing(sqlite3.connect(source, isolation_level=None)) as old:
        for table in TABLES:
            columns = _columns(target, table)
            with contextlib.suppress(sqlite3.DatabaseError):  # an older journal has fewer
                columns = [name for name in columns if name in _columns(old, table)] or columns
            into = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
            target.execute("BEGIN IMMEDIATE")
            for row in _readable_rows(old, table, columns):
                with contextlib.suppress(sqlite3.IntegrityError, sqlite3.InterfaceError):  # a row of nonsense
                    target.execute(into, row)
            target.execute("COMMIT")


def _columns(con: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in con.execute(f"PRAGMA table_info({table})")]


def _readable_rows(con: sqlite3.Connection, table: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    wanted = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
    if table != "record":
        with contextlib.suppress(sqlite3.DatabaseError):
            yield from con.execute(wanted)
        return
    last, gap = 0, 0
    while gap < _GAP:
        try:
            for row in con.execute(f"{wanted} NOT INDEXED WHERE seq > ? ORDER BY seq", (last,)):
                yield row
                last, gap = row[0], 0
            return
        except sqlite3.DatabaseError as exc:
            if not is_damaged(exc):
                return  # no such table: the schema itself is gone
        last, gap = last + 1, gap + 1


def _with_new_first_page(copy: Path) -> bool:
    """Give *copy* the first page of a new journal: the tables are always made alike, so it tells where they are."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        schema.create(empty)
        page = bytearray(empty.serialize()[:4096])
    pages = copy.stat().st_size // len(page)
    if pages < 1:
        return False
    page[18:20] = b"\x02\x02"  # with a write-ahead log
    page[28:32] = pages.to_bytes(4, "big")
    with open(copy, "r+b") as file:  # noqa: PTH123
        file.write(page)
        file.flush()
        os.fsync(file.fileno())
    return True
