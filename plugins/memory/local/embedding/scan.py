"""The nearest vectors of some scopes: a scan over one bit for each number, then the best compared as bytes.

Nothing is built in advance and nothing is lost by a deletion; a million vectors are 48 MB to look through.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hermes.plugins.memory.local.embedding.encoder import Array
from hermes.plugins.memory.local.embedding.vectors import Model, bits, codes_of, models, scale
from hermes.plugins.memory.local.traces import VECTOR_BITS

SHORTLIST = 300
"""Vectors that are compared as bytes."""
MANY = 4_096
"""Of a block with more vectors only the first half of the bits is compared for all."""
LOOKED_AT_WHOLE = 2 * SHORTLIST
"""So many of the first such block are compared whole, and of the others what is as near."""


class _Block(NamedTuple):
    """One-bit codes as they are scanned: *columns* holds the first 64 bits of all, then the next 64, and so on."""

    version: int
    ids: Array
    columns: Array


class Cache:
    """Blocks that were read, *most* bytes of them; what does not fit is read again for each question."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._blocks: OrderedDict[int, _Block] = OrderedDict()
        self._loose: dict[tuple[int, int], _Block] = {}
        self.bytes = 0

    def block(self, db: sqlite3.Connection, block: int, version: int, words: int) -> _Block:
        """The block with that number, as *db* has it."""
        with self._lock:
            known = self._blocks.get(block)
            if known is not None and known.version == version:
                self._blocks.move_to_end(block)
                return known
        ids, rows = db.execute("SELECT ids, bits FROM vector_blocks WHERE id = ?", (block,)).fetchone()
        read = _block(version, np.frombuffer(ids, "<i8"), np.frombuffer(rows, "<u8").reshape(-1, words))
        self._keep(block, read)
        return read

    def loose(self, db: sqlite3.Connection, model: Model, scope: int, changes: int) -> _Block:
        """The vectors of a scope that stand in no block."""
        with self._lock:
            known = self._loose.get((model.slot, scope))
        if known is not None and known.version == changes:
            return known
        rows = db.execute(
            "SELECT id, codes FROM vectors WHERE slot = ? AND scope = ? AND block IS NULL",
            (model.slot, scope),
        ).fetchall()
        ids = np.array([vector for vector, _ in rows], "<i8")
        read = _block(changes, ids, bits(codes_of([codes for _, codes in rows], model.width), model))
        with self._lock:
            if len(self._loose) > 64:
                self._loose.clear()
            self._loose[model.slot, scope] = read
        return read

    def _keep(self, block: int, read: _Block) -> None:
        size = read.ids.nbytes + read.columns.nbytes
        with self._lock:
            old = self._blocks.pop(block, None)
            self.bytes -= old.ids.nbytes + old.columns.nbytes if old else 0
            while self._blocks and self.bytes + size > self._most:
                _, least = self._blocks.popitem(last=False)
                self.bytes -= least.ids.nbytes + least.columns.nbytes
            if self.bytes + size <= self._most:
                self._blocks[block] = read
                self.bytes += size


class Scan:
    """The vectors of *model* in *scopes*, inside one read transaction; see ``records.Vectors``."""

    def __init__(self, db: sqlite3.Connection, model: Model, scopes: Sequence[int], cache: Cache) -> None:
        self._db = db
        self._scopes = scopes
        self._cache = cache
        self.model = model
        self.calibration = model.calibration
        self.related = model.calibration.related

    def nearest(self, vector: Array, limit: int) -> dict[int, float]:
        """The *limit* messages nearest to *vector*, with their cosine."""
        asked = bits(np.rint(vector * scale(self.model.width))[None, :], self.model)[0]
        short, cut = _Shortlist(SHORTLIST), 0
        for block in self._each(len(asked)):
            if len(block.ids) < MANY:
                short.look(block.ids, _distances(block.columns, asked))
                continue
            half = _distances(block.columns[: len(asked) // 2], asked)
            cut = cut or int(np.partition(half, LOOKED_AT_WHOLE)[LOOKED_AT_WHOLE])
            near = np.flatnonzero(half <= cut)
            whole = half[near]
            for column, word in zip(block.columns[len(asked) // 2 :], asked[len(asked) // 2 :], strict=True):
                whole += np.bitwise_count(column.take(near) ^ word)
            short.look(block.ids[near], whole)
        rows = self._db.execute(
            "SELECT id, codes FROM vectors WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(short.ids()),),
        ).fetchall()
        best = self._cosines(rows, vector)
        return dict(sorted(best.items(), key=lambda item: -item[1])[:limit])

    def closeness(self, vector: Array, messages: Sequence[int]) -> dict[int, float]:
        """The cosine of *vector* and those of *messages* that have vectors."""
        return self._cosines(self._of(messages, "codes"), vector)

    def tokens(self, messages: Sequence[int]) -> dict[int, bytes]:
        """The codes of the tokens of those of *messages* that have any, eight bytes each."""
        found: dict[int, bytes] = {}
        for vector, codes in self._of(messages, "tokens"):
            if codes:
                found[vector >> VECTOR_BITS] = found.get(vector >> VECTOR_BITS, b"") + codes
        return found

    def _each(self, words: int) -> Iterator[_Block]:
        (changes,) = self._db.execute(
            "SELECT changes FROM models WHERE slot = ?", (self.model.slot,)
        ).fetchone()
        for scope in self._scopes:
            blocks = self._db.execute(
                "SELECT id, version FROM vector_blocks WHERE slot = ? AND scope = ? ORDER BY id",
                (self.model.slot, scope),
            ).fetchall()
            for block, version in blocks:
                yield self._cache.block(self._db, block, version, words)
            yield self._cache.loose(self._db, self.model, scope, changes)

    def _of(self, messages: Sequence[int], column: str) -> list[tuple[int, bytes]]:
        rows: list[tuple[int, bytes]] = self._db.execute(
            f"SELECT v.id, v.{column} FROM json_each(?1) m JOIN vectors v"  # noqa: S608 - a name from above
            " ON v.id BETWEEN m.value << ?2 AND (m.value + 1 << ?2) - 1 WHERE v.slot = ?3",
            (json.dumps(list(messages)), VECTOR_BITS, self.model.slot),
        ).fetchall()
        return rows

    def _cosines(self, rows: Sequence[tuple[int, bytes]], vector: Array) -> dict[int, float]:
        if not rows:
            return {}
        codes = codes_of([codes for _, codes in rows], self.model.width)
        cosines = (codes.astype(np.float32) @ vector) / scale(self.model.width)
        best: dict[int, float] = {}
        for (found, _), cosine in zip(rows, cosines.tolist(), strict=True):
            message = found >> VECTOR_BITS
            if cosine > best.get(message, -2.0):
                best[message] = cosine
        return best


def _distances(columns: Array, asked: Array) -> Array:
    """In how many bits each vector of *columns* differs from *asked*."""
    return np.bitwise_count(columns ^ asked[: len(columns), None]).sum(0, dtype=np.uint16)


class _Shortlist:
    """The *size* ids with the smallest distances, of many that are looked at block by block."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._limit = 1 << 15
        self._ids: list[Array] = []
        self._distances: list[Array] = []
        self._count = 0

    def look(self, ids: Array, distances: Array) -> None:
        """Take what is nearer than the worst of the list."""
        near = np.flatnonzero(distances < self._limit)
        self._ids.append(ids[near])
        self._distances.append(distances[near])
        self._count += len(near)
        if self._count > 2 * self._size:
            self._shorten()

    def ids(self) -> list[int]:
        """The list."""
        self._shorten()
        found: list[int] = self._ids[0].tolist() if self._ids else []
        return found

    def _shorten(self) -> None:
        if not self._ids:
            return
        ids, distances = np.concatenate(self._ids), np.concatenate(self._distances)
        if len(ids) > self._size:
            best = np.argpartition(distances, self._size - 1)[: self._size]
            ids, distances = ids[best], distances[best]
            self._limit = int(distances.max())
        self._ids, self._distances, self._count = [ids], [distances], len(ids)


def _block(version: int, ids: Array, rows: Array) -> _Block:
    return _Block(version, ids, np.ascontiguousarray(rows.T))


def find(db: sqlite3.Connection, name: str, scopes: Sequence[int], cache: Cache) -> Scan | None:
    """The vectors of the model called *name*, if there are any."""
    for model in models(db):
        if model.name == name:
            return Scan(db, model, scopes, cache)
    return None
