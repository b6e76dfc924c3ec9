"""The format of the file, and how an older one is brought up to date: forwards only, a copy is kept first."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hermes.errors import StoreUnavailable
from hermes.plugins.memory.local.migrations import MIGRATIONS

APPLICATION_ID = 0x68726D73
"""Marks the file as ours in its header."""

PLACE_BITS = 20
PASSAGE_BITS = 6
SESSION_LIMIT = 1 << PLACE_BITS
"""Messages under one session id; a longer session goes on under another."""


def scope_term(scope_id: int) -> str:
    """The term that every passage of a scope holds; no text can, as text.py makes no such term."""
    return f"§{scope_id}"


def bring_up_to_date(db: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Make the tables that *db* lacks. Raises StoreUnavailable for a file that is newer, or not ours."""
    version = _version(db, path, len(migrations))
    if version == len(migrations):
        return
    copy = _copy(db, backup_path(path, version)) if version else None
    try:
        db.execute("BEGIN IMMEDIATE")
        if _version(db, path, len(migrations)) == version:  # else another process was quicker
            _migrate(db, migrations[version:], len(migrations))
            if copy is not None:
                copy.replace(backup_path(path, version))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    finally:
        if copy is not None:
            copy.unlink(missing_ok=True)


def _migrate(db: sqlite3.Connection, steps: Sequence[str], version: int) -> None:
    for step in steps:
        for statement in step.split(";"):
            if statement.strip():
                db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {version}")


def check(db: sqlite3.Connection, path: Path, migrations: Sequence[str] = MIGRATIONS) -> bool:
    """True if *db* can be read as it is, False if it still has no tables or needs a migration."""
    return _version(db, path, len(migrations)) == len(migrations)


def backup_path(path: Path, version: int) -> Path:
    """Where the copy goes that is made before version *version* is changed."""
    return path.with_name(f"{path.name}.before-{version + 1}")


def remove_backups(path: Path) -> None:
    """Delete the copies that migrations left: what is forgotten must not live on in one."""
    for backup in path.parent.glob(f"{path.name}.before-*"):
        backup.unlink(missing_ok=True)


def owe_scrub(db: sqlite3.Connection) -> None:
    """Note, in the transaction that deletes, that the write-ahead log still holds what was deleted."""
    db.execute("INSERT OR REPLACE INTO facts VALUES ('scrub', '1')")


def owes_scrub(db: sqlite3.Connection) -> bool:
    """True where a deletion was not followed by a scrub."""
    return db.execute("SELECT 1 FROM facts WHERE name = 'scrub'").fetchone() is not None


def scrubbed(db: sqlite3.Connection) -> None:
    """Note that it was done."""
    db.execute("DELETE FROM facts WHERE name = 'scrub'")


def _version(db: sqlite3.Connection, path: Path, newest: int) -> int:
    tables = _has_tables(db)  # first: another process may make them, and mark the file, between these looks
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application not in (0, APPLICATION_ID) or (application == 0 and tables):
        raise StoreUnavailable(path, "is not a store of local memory", next_step=f"move {path} away")
    if version > newest:
        raise StoreUnavailable(
            path,
            f"was written by a newer hermes (its format is {version}, this one knows {newest})",
            next_step="upgrade hermes",
        )
    return int(version)


def is_empty(db: sqlite3.Connection) -> bool:
    """True for a file that has no tables yet."""
    return not _has_tables(db)


def _has_tables(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def _copy(db: sqlite3.Connection, backup: Path) -> Path:
    """A copy of *db* beside *backup*, which becomes it when the migration is sure to be made by this process."""
    made = backup.with_name(f"{backup.name}.{os.getpid()}")
    made.unlink(missing_ok=True)
    os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(made)) as copy:
            db.backup(copy)
    except BaseException:
        made.unlink()  # half a copy is none
        raise
    return made
