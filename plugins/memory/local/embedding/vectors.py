"""Vectors in the tables of the SQLite store: which texts still lack one, and putting them in."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hermes.plugins.memory.local import text, traces
from hermes.plugins.memory.local.connections import Connections
from hermes.plugins.memory.local.embedding.calibration import Calibration
from hermes.plugins.memory.local.embedding.encoder import Array, Encoded, Said, Traits
from hermes.plugins.memory.local.records import Embedding
from hermes.plugins.memory.local.schema import PLACE_BITS, SESSION_LIMIT
from hermes.plugins.memory.local.traces import VECTOR_BITS

LOOSE = 512
"""Vectors of a scope that are not packed yet, at most."""
BLOCK = 16_384
"""Vectors in a block."""
BEFORE_CHARACTERS = 600
DROPPED_AT_ONCE = 2_000


class Pending(NamedTuple):
    """A message without vectors: *parts* of it to encode, none if the model does not read its script.

    *upto* is the place in its session that must have been reached before, *before* the message that it is said
    after, 0 for none.
    """

    message: int
    scope: int
    upto: int
    before: int
    parts: list[Said]


class Model(NamedTuple):
    """A model that there are vectors of."""

    slot: int
    name: str
    source: str
    width: int
    complete: bool
    calibration: Calibration


class SqliteVectors:
    """The vectors of one store."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    # -- models ------------------------------------------------------------------------------------------

    def models(self) -> list[Model]:
        """Those that there are vectors of: one, or two while one takes the place of the other."""
        with self._connections.read() as db:
            return [] if db is None else models(db)

    def take_up(self, traits: Traits, source: str, calibrate: Callable[[], Calibration]) -> Model:
        """The model of *traits*, found or entered; what is half done of another gives way."""
        for model in self.models():
            if model.name == traits.name:
                return model
        calibration = calibrate()
        with self._connections.write() as db:
            for model in models(db):
                if model.name == traits.name:
                    return model
            for model in models(db):
                if not model.complete:
                    while not traces.forget_model(db, model.slot, DROPPED_AT_ONCE):
                        pass
            taken = {model.slot for model in models(db)}
            slot = min({0, 1} - taken)
            db.execute(
                "INSERT INTO models (slot, name, source, width, calibration) VALUES (?, ?, ?, ?, ?)",
                (slot, traits.name, source, traits.width, calibration.to_bytes()),
            )
        return Model(slot, traits.name, source, traits.width, False, calibration)

    def complete(self, model: Model) -> None:
        """Note that every text has its vectors of *model*, and let go of other models bit by bit."""
        with self._connections.read() as db:
            if db is None or (model.complete and len(models(db)) == 1):
                return
        with self._connections.write() as db:
            db.execute("UPDATE models SET complete = 1 WHERE slot = ?", (model.slot,))
        gone = False
        while not gone:
            with self._connections.write() as db:
                others = [other for other in models(db) if other.slot != model.slot]
                gone = not others or traces.forget_model(db, others[0].slot, DROPPED_AT_ONCE)

    def progress(self, name: str) -> Embedding:
        """How far the model called *name* has come."""
        with self._connections.read() as db:
            if db is None:
                return Embedding()
            (messages,) = db.execute("SELECT coalesce(sum(messages), 0) FROM scopes").fetchone()
            row = db.execute("SELECT done, slot FROM models WHERE name = ?", (name,)).fetchone()
            if row is None:
                return Embedding(waiting=messages)
            (waiting,) = db.execute(
                "SELECT coalesce(sum(s.next - coalesce(e.upto, 0)), 0) FROM sessions s"
                " LEFT JOIN embedded e ON e.session = s.id AND e.slot = ? WHERE s.next > coalesce(e.upto, 0)",
                (row[1],),
            ).fetchone()
            return Embedding(done=row[0], waiting=min(waiting, messages))

    # -- what lacks vectors ------------------------------------------------------------------------------

    def pending(self, model: Model, traits: Traits, count: int) -> list[Pending]:
        """About *count* messages that lack vectors, those of the newest sessions first."""
        found: list[Pending] = []
        with self._connections.read() as db:
            if db is None:
                return []
            sessions = db.execute(
                "SELECT s.id, s.scope, coalesce(e.upto, 0), s.next, s.target = '' FROM sessions s"
                " LEFT JOIN embedded e ON e.session = s.id AND e.slot = ? WHERE s.next > coalesce(e.upto, 0)"
                " ORDER BY s.last DESC LIMIT ?",
                (model.slot, count),
            ).fetchall()
            for session in sessions:
                found.extend(_of_session(db, model, traits, session, count - len(found)))
                if len(found) >= count:
                    break
        return found

    def put(self, model: Model, done: Sequence[tuple[Pending, list[Encoded]]]) -> None:
        """Store vectors, but none of a text that was deleted meanwhile."""
        with self._connections.write() as db:
            if all(known.name != model.name for known in models(db)):
                return  # another model took its place
            for pending, encoded in done:
                session, place = pending.message >> PLACE_BITS, pending.message & SESSION_LIMIT - 1
                if _upto(db, model.slot, session) < pending.upto or not _is_there(db, pending.before):
                    continue  # something was deleted meanwhile: from there on it is encoded anew
                if _is_there(db, pending.message):
                    _put(db, model, pending, encoded)
                db.execute(
                    "INSERT INTO embedded VALUES (?1, ?2, ?3)"
                    " ON CONFLICT DO UPDATE SET upto = max(upto, excluded.upto)",
                    (model.slot, session, place + 1),
                )
            for scope in {pending.scope for pending, _ in done}:
                _pack(db, model, scope)
            db.execute("UPDATE models SET changes = changes + 1 WHERE slot = ?", (model.slot,))


def models(db: sqlite3.Connection) -> list[Model]:
    """The models that *db* holds vectors of."""
    rows = db.execute("SELECT slot, name, source, width, complete, calibration FROM models").fetchall()
    return [
        Model(slot, name, source, width, bool(complete), Calibration.from_bytes(blob, width))
        for slot, name, source, width, complete, blob in rows
    ]


def scale(width: int) -> float:
    """What a number of a vector of *width* is multiplied with to become a byte."""
    return 25.4 * math.sqrt(width)


def pieces(said: str) -> list[str]:
    """*said* in overlapping pieces that a model reads whole."""
    words = said.split()
    if len(words) <= text.PASSAGE_WORDS * 3 // 2:
        return [said]
    step = text.PASSAGE_WORDS - text.PASSAGE_OVERLAP
    starts = range(0, len(words) - text.PASSAGE_OVERLAP, step)
    return [" ".join(words[i : i + text.PASSAGE_WORDS]) for i in starts][: text.MAX_PASSAGES]


def _of_session(
    db: sqlite3.Connection, model: Model, traits: Traits, session: tuple[int, int, int, int, bool], count: int
) -> Iterator[Pending]:
    """The messages of a session that lack vectors, in order; what has none to get is named all the same."""
    number, scope, upto, end, spoken = session
    low = number << PLACE_BITS
    rows = db.execute(
        "SELECT m.id, coalesce(a.name, ''), m.text, EXISTS (SELECT 1 FROM vectors WHERE id = (m.id << ?) | ?)"
        " FROM messages m LEFT JOIN authors a ON a.id = m.author WHERE m.id BETWEEN ? AND ? ORDER BY m.id LIMIT ?",
        (VECTOR_BITS, model.slot, low + max(0, upto - 1), low + end - 1, count + 1),
    ).fetchall()
    last, before, reached = -1, "", upto
    for message, author, said, has in rows:
        spoken_text = f"{author}: {said}" if author else said
        if message >= low + upto:
            beside = last if spoken and last == message - 1 else 0
            parts = [] if has or not traits.reads(said) else pieces(spoken_text)
            yield Pending(message, scope, reached, beside, _said(parts, before if beside else ""))
            reached = message - low + 1
        last, before = message, spoken_text[-BEFORE_CHARACTERS:]
    if len(rows) <= count and last < low + end - 1:
        yield Pending(low + end - 1, scope, reached, 0, [])  # the last messages are gone


def _said(parts: Sequence[str], before: str) -> list[Said]:
    return [Said(part, before if i == 0 else "") for i, part in enumerate(parts)]


def _upto(db: sqlite3.Connection, slot: int, session: int) -> int:
    row = db.execute("SELECT upto FROM embedded WHERE slot = ? AND session = ?", (slot, session)).fetchone()
    return int(row[0]) if row else 0


def _is_there(db: sqlite3.Connection, message: int) -> bool:
    """Whether *message* is stored; 0 is none, which is always there."""
    return not message or db.execute("SELECT 1 FROM messages WHERE id = ?", (message,)).fetchone() is not None


def _put(db: sqlite3.Connection, model: Model, pending: Pending, encoded: Sequence[Encoded]) -> None:
    calibration, times = model.calibration, scale(model.width)
    for part, vectors in enumerate(encoded):
        codes = np.clip(np.rint(vectors.whole * times), -127, 127).astype(np.int8).tobytes()
        tokens = b""
        if vectors.tokens is not None and calibration.axes is not None:
            tokens = token_codes(vectors.tokens, calibration).tobytes()
        added = db.execute(
            "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, NULL, ?, ?)",
            (
                pending.message << VECTOR_BITS | part << 1 | model.slot,
                model.slot,
                pending.scope,
                codes,
                tokens,
            ),
        ).rowcount
        if added and part == 0:
            db.execute("UPDATE models SET done = done + 1 WHERE slot = ?", (model.slot,))


def _pack(db: sqlite3.Connection, model: Model, scope: int) -> None:
    """Put the one-bit codes of a scope's loose vectors into its last block, once there are many."""
    loose = db.execute(
        "SELECT id, codes FROM vectors WHERE slot = ? AND scope = ? AND block IS NULL ORDER BY id",
        (model.slot, scope),
    ).fetchall()
    if len(loose) < LOOSE:
        return
    ids = np.array([vector for vector, _ in loose], "<i8").tobytes()
    rows = bits(codes_of([codes for _, codes in loose], model.width), model).tobytes()
    last = (
        db.execute(
            "SELECT id FROM vector_blocks WHERE slot = ? AND scope = ? AND count <= ? ORDER BY id DESC LIMIT 1",
            (model.slot, scope, BLOCK - len(loose)),
        ).fetchone()
        or db.execute(
            "INSERT INTO vector_blocks (slot, scope, count, ids, bits) VALUES (?, ?, 0, x'', x'') RETURNING id",
            (model.slot, scope),
        ).fetchone()
    )
    db.execute(
        "UPDATE vector_blocks SET ids = CAST(ids || ? AS BLOB), bits = CAST(bits || ? AS BLOB),"
        " count = count + ?, version = version + 1 WHERE id = ?",
        (ids, rows, len(loose), *last),
    )
    db.executemany("UPDATE vectors SET block = ? WHERE id = ?", [(*last, vector) for vector, _ in loose])


def codes_of(blobs: Sequence[bytes], width: int) -> Array:
    """Stored vectors as one matrix of bytes."""
    return np.frombuffer(b"".join(blobs), np.int8).reshape(-1, width)


def bits(codes: Array, model: Model) -> Array:
    """One bit for each number of each vector, in words of 64: on which side of the centre it lies."""
    sides = np.packbits(codes > model.calibration.centre * scale(model.width), axis=1)
    return np.pad(sides, ((0, 0), (0, -sides.shape[1] % 8))).view("<u8")


def token_codes(tokens: Array, calibration: Calibration) -> Array:
    """64 bits for each token: on which side of the middle it lies along each axis."""
    return np.packbits((tokens - calibration.middle) @ calibration.axes > 0, axis=1)
