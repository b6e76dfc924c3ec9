"""Vectors go with the texts that they belong to."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hermes.plugins.memory.local.store import SqliteStore
from tests.plugins.local.embedding.conftest import Open, found, settled, tell


def vectors_of(home: Path) -> dict[str, bytes]:
    """Text of a message -> its vector as it stands in the file."""
    store = SqliteStore(home / "local" / "memory.db")
    try:
        with store._connections.read() as db:
            assert db is not None
            return dict(
                db.execute(
                    "SELECT m.text, v.codes FROM vectors v JOIN messages m ON m.id = v.id >> 7"
                ).fetchall()
            )
    finally:
        store.close()


def holds(home: Path, needle: bytes) -> list[str]:
    """The files below *home* that hold *needle*."""
    return [path.name for path in home.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_a_deleted_text_leaves_no_vector_in_any_file(by_meaning: Open, home: Path) -> None:
    """No byte of a forgotten message's vector is left, nor of the next one's, which holds a trace of it."""
    provider = by_meaning()
    tell(provider, *[f"Number {i} of the tales about the sea" for i in range(20)])
    tell(provider, "The attic key lies under the third flowerpot", "Thank you for that", session="secret")
    settled(provider)
    vectors = vectors_of(home)
    gone = [vectors["The attic key lies under the third flowerpot"], vectors["Thank you for that"]]
    assert all(holds(home, vector) for vector in gone)
    (record,) = provider.search_records("attic key", limit=1) or []
    provider.memory.store.forget(None, ids=[record["id"]])
    assert [holds(home, gone[0][i : i + 24]) for i in range(0, len(gone[0]) - 24, 24)] == [[]] * 3
    settled(provider)
    assert "Thank you for that" in vectors_of(home)


def test_forgetting_a_session_takes_its_vectors_out_of_the_scan(
    by_meaning: Open, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed one-bit codes are written anew without those that were forgotten; the others are still found."""
    monkeypatch.setattr("hermes.plugins.memory.local.embedding.vectors.LOOSE", 32)
    provider = by_meaning()
    names = [f"{a}{b}" for a in ("kor", "mel", "tav", "zin", "bru", "fo") for b in "bdfglmnprs"]
    for session in range(3):
        tell(
            provider,
            *[f"{name}a {name}e {name}i {name}o" for name in names[session::3]],
            session=f"s{session}",
        )
    settled(provider)
    store = provider.memory.store
    with store._connections.read() as db:  # type: ignore[attr-defined]
        packed = db.execute(
            "SELECT sum(count), sum(length(ids)), sum(length(bits)) FROM vector_blocks"
        ).fetchone()
    assert packed[0] >= 32
    store.forget(None, session_id="s1")
    with store._connections.read() as db:  # type: ignore[attr-defined]
        count, ids, bits = db.execute(
            "SELECT sum(count), sum(length(ids)), sum(length(bits)) FROM vector_blocks"
        ).fetchone()
        (vectors,) = db.execute("SELECT count(*) FROM vectors").fetchone()
        (done,) = db.execute("SELECT done FROM models").fetchone()
    assert vectors == done == 40
    assert ids == 8 * count
    assert bits == count * packed[2] / packed[0]
    assert found(provider, f"{names[3]}e")[0].startswith(f"{names[3]}a ")
    assert not any(text.startswith(f"{names[1]}a ") for text in found(provider, f"{names[1]}e", 50))


def test_forgetting_everything_leaves_the_model_known(by_meaning: Open) -> None:
    """After everything was forgotten, new texts are embedded without the model being looked at anew."""
    provider = by_meaning()
    tell(provider, "Our cat sleeps on the radiator")
    settled(provider)
    provider.forget_records()
    assert settled(provider)["embedded"] == 0
    tell(provider, "The car needs new tyres")
    assert settled(provider)["embedded"] == 1
    assert found(provider, "automobile") == ["The car needs new tyres"]


def test_random_forgetting_keeps_vectors_and_texts_together(
    by_meaning: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is forgotten while texts are embedded: in the end each text has one vector, and each vector its text."""
    monkeypatch.setattr("hermes.plugins.memory.local.embedding.vectors.LOOSE", 8)
    monkeypatch.setattr("hermes.plugins.memory.local.embedding.background.AT_ONCE", 3)
    provider, chance = by_meaning(), random.Random(4)
    store = provider.memory.store
    for step in range(12):
        tell(
            provider, *[f"step {step} thing {i}" for i in range(chance.randint(1, 9))], session=f"s{step % 4}"
        )
        ids = [record.id for record in store.listing(None)]
        store.forget(None, ids=chance.sample(ids, min(len(ids), chance.randint(1, 4))))
    settled(provider)
    with store._connections.read() as db:  # type: ignore[attr-defined]
        messages = {row[0] for row in db.execute("SELECT id FROM messages")}
        vectors = {row[0] for row in db.execute("SELECT id >> 7 FROM vectors")}
        (done,) = db.execute("SELECT done FROM models").fetchone()
        packed = {row[0] for row in db.execute("SELECT id FROM vectors WHERE block IS NOT NULL")}
        blocks = db.execute("SELECT ids, count FROM vector_blocks").fetchall()
    assert messages == vectors
    assert done == len(messages)
    in_blocks = [int.from_bytes(ids[i : i + 8], "little") for ids, _ in blocks for i in range(0, len(ids), 8)]
    assert sorted(in_blocks) == sorted(packed)
