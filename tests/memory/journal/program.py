"""The program that is killed: it appends turns, says which are safe, and delivers them to a slow provider.

The provider takes the key: what comes twice under one key is kept once, as a good backend does.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from pathlib import Path

from hermes.memory.journal import Deliverer, Journal, Record, Sent
from tests.memory.journal.support import PROVIDER, end, turn


class Backend:
    """A provider's store: what arrived, in order. *forgetful* ones only accept, and keep it in memory."""

    def __init__(self, path: Path, *, delay: float = 0.0, forgetful: bool = False) -> None:
        self.delay = delay
        self.forgetful = forgetful
        self.con = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        self.con.execute("PRAGMA journal_mode = WAL")
        self.con.execute("PRAGMA synchronous = OFF")
        self.con.execute(
            "CREATE TABLE IF NOT EXISTS taken "
            "(place INTEGER PRIMARY KEY, key TEXT UNIQUE, session TEXT, kind TEXT, text TEXT)"
        )

    def __call__(self, record: Record) -> Sent:
        """Take *record*."""
        if self.delay:
            time.sleep(self.delay)
        if self.forgetful:
            return Sent.ACCEPTED
        said = record.payload.get("user") or str(len(record.payload["messages"]))
        self.con.execute(
            "INSERT OR IGNORE INTO taken (key, session, kind, text) VALUES (?, ?, ?, ?)",
            (record.key, record.session_id, record.kind.value, said),
        )
        return Sent.STORED


def append_only(path: Path, name: str, number: int) -> None:
    """Append *number* turns to a session of one's own; fails if one was not durable."""
    with Journal(path) as journal:
        for place in range(number):
            done = journal.append([turn(str(place), name, key=f"{name}-{place}")])
            if not done.durable:
                sys.exit(f"not durable: {done.reason}")


def converse(path: Path, store: Path, name: str, number: int, *, forgetful: bool) -> None:
    """Say *number* turns in two sessions, telling on standard output which of them are safe."""
    with Journal(path) as journal:
        deliverer = Deliverer(
            journal, Backend(store, delay=0.003, forgetful=forgetful), providers=lambda: [PROVIDER]
        )
        deliverer.start()
        for place in range(number):
            session = f"{name}-{place % 2}"
            if journal.append([turn(str(place), session, key=f"{name}-{place}")]).durable:
                os.write(1, f"{place}\n".encode())
            deliverer.wake()
        journal.append([end(f"{name}-0", key=f"{name}-end")])
        deliverer.flush(30)
        deliverer.stop(5)
    os.write(1, b"done\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["append", path, name, number]:
            append_only(Path(path), name, int(number))
        case ["converse", path, store, name, number, how]:
            converse(Path(path), Path(store), name, int(number), forgetful=how == "accepted")
