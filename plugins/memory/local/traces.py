"""Taking vectors out with the texts they belong to. Needs no numpy: it may not be there any more.

Everything here runs inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from hermes.plugins.memory.local.schema import PLACE_BITS, SESSION_LIMIT

VECTOR_BITS = 7
"""Of a vector's id, below its message's: the number of the passage, and the slot as the last."""
TABLES = ("vectors", "vector_blocks", "embedded")


def forget(db: sqlite3.Connection, messages: Iterable[int]) -> None:
    """Take out the vectors of *messages*, and those of what was said right after: they hold a trace of them.

    The latter are made anew in the background.
    """
    if db.execute("SELECT 1 FROM models LIMIT 1").fetchone() is None:
        return
    gone = set(messages)
    after = {message + 1 for message in gone} - gone
    blocks: defaultdict[int, set[int]] = defaultdict(set)
    for message in gone | after:
        low = message << VECTOR_BITS
        rows = db.execute(
            "DELETE FROM vectors WHERE id BETWEEN ? AND ? RETURNING id, slot, block",
            (low, low + (1 << VECTOR_BITS) - 1),
        ).fetchall()
        for vector, _, block in rows:
            if block is not None:
                blocks[block].add(vector)
        firsts = [(slot,) for vector, slot, _ in rows if vector - low < 2]  # one for each slot
        db.executemany("UPDATE models SET done = done - 1 WHERE slot = ?", firsts)
    for block, vectors in blocks.items():
        _take_out(db, block, vectors)
    db.executemany(
        "UPDATE embedded SET upto = min(upto, ?) WHERE session = ?",
        [(message & SESSION_LIMIT - 1, message >> PLACE_BITS) for message in after],
    )
    db.execute("UPDATE models SET changes = changes + 1")


def forget_session(db: sqlite3.Connection, session: int) -> None:
    """Forget how far a session was embedded that is no more."""
    db.execute("DELETE FROM embedded WHERE session = ?", (session,))


def forget_everything(db: sqlite3.Connection) -> None:
    """Empty the tables; the model stays known."""
    for table in TABLES:
        db.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
    db.execute("UPDATE models SET done = 0, changes = changes + 1")


def forget_model(db: sqlite3.Connection, slot: int, most: int) -> bool:
    """Delete up to *most* vectors of the model in *slot*, and the model after the last; True if it is gone."""
    rows = db.execute("SELECT id FROM vectors WHERE slot = ? LIMIT ?", (slot, most)).fetchall()
    db.executemany("DELETE FROM vectors WHERE id = ?", rows)
    if len(rows) == most:
        return False
    for table in (*TABLES, "models"):
        db.execute(f"DELETE FROM {table} WHERE slot = ?", (slot,))  # noqa: S608 - names from above
    return True


def _take_out(db: sqlite3.Connection, block: int, vectors: set[int]) -> None:
    """Write *block* anew without *vectors*."""
    row = db.execute("SELECT ids, bits FROM vector_blocks WHERE id = ?", (block,)).fetchone()
    if row is None:
        return
    ids, kept, bits = _without(array("q", row[0]), row[1], vectors)
    if not ids:
        db.execute("DELETE FROM vector_blocks WHERE id = ?", (block,))
        return
    db.execute(
        "UPDATE vector_blocks SET ids = ?, bits = ?, count = ?, version = version + 1 WHERE id = ?",
        (kept, bits, len(ids), block),
    )


def _without(ids: array[int], bits: bytes, vectors: set[int]) -> tuple[array[int], bytes, bytes]:
    width = len(bits) // max(1, len(ids))
    runs = list(_runs(ids, vectors))
    left = array("q", [i for first, end in runs for i in ids[first:end]])
    return left, left.tobytes(), b"".join(bits[first * width : end * width] for first, end in runs)


def _runs(ids: Sequence[int], without: set[int]) -> Iterator[tuple[int, int]]:
    """The stretches of *ids* that hold none of *without*."""
    first = 0
    for i, vector in enumerate(ids):
        if vector in without:
            if first < i:
                yield first, i
            first = i + 1
    if first < len(ids):
        yield first, len(ids)
