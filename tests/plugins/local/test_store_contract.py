"""The store in SQLite keeps to the contract of stores."""

from __future__ import annotations

from pathlib import Path

from hermes.plugins.memory.local.records import Store
from hermes.plugins.memory.local.store import SqliteStore
from tests.plugins.local.store_contract import StoreContract


class TestSqliteStore(StoreContract):
    """One file below the place."""

    def open(self, place: Path) -> Store:
        """The store in SQLite."""
        return SqliteStore(place / "local" / "memory.db")
