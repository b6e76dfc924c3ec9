"""The scan over one-bit codes, the bytes that it ends with, and the memory that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local.records import Turn
from hermes.plugins.memory.local.store import SqliteStore

WIDTH = 128


def filled(home: Path, count: int, memory: int = 1 << 20) -> tuple[SqliteStore, Any, Any]:
    """A store with *count* vectors, ten around each of many centres; its messages in order, and the vectors."""
    import numpy as np

    from hermes.plugins.memory.local.embedding.calibration import Calibration
    from hermes.plugins.memory.local.embedding.encoder import Encoded, Traits

    store = SqliteStore(home / "local" / "memory.db", vector_memory=memory)
    for start in range(0, count, 500):
        batch = range(start, min(count, start + 500))
        store.add([Turn(f"s{i // 50}", f"text number {i}", "", float(i)) for i in batch], "owner")
    chance = np.random.default_rng(3)
    centres = np.repeat(chance.standard_normal((count // 10, WIDTH)), 10, axis=0)
    vectors = (centres + 0.7 * chance.standard_normal((count, WIDTH))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    traits = Traits("random", WIDTH)
    kept = store.vectors()
    model = kept.take_up(traits, "{}", lambda: Calibration(np.zeros(WIDTH, np.float32), 0.5))
    done = 0
    numbers: dict[int, int] = {}
    while pending := kept.pending(model, traits, 400):
        for one in pending:
            numbers[one.message] = done
            done += 1
        kept.put(model, [(p, [Encoded(vectors[numbers[p.message]])]) for p in pending])
    order = sorted(numbers, key=numbers.__getitem__)
    return store, order, vectors


def test_finds_what_an_exact_comparison_finds(home: Path) -> None:
    """Of the ten nearest by exact cosines nearly all are found, with their cosines."""
    import numpy as np

    store, order, vectors = filled(home, 3_000)
    hits = 0
    with store.view("owner") as view:
        assert view is not None
        kept = view.vectors("random")
        assert kept is not None
        for i in range(0, 200, 10):
            asked = vectors[i] + 0.08 * np.random.default_rng(i).standard_normal(WIDTH).astype(np.float32)
            asked /= np.linalg.norm(asked)
            exact = vectors @ asked
            near = kept.nearest(asked, 10)
            assert near[order[i]] == pytest.approx(float(exact[i]), abs=0.01)
            hits += len({order[j] for j in np.argsort(-exact)[:10]} & set(near))
    store.close()
    assert hits >= 190


def test_most_vectors_are_packed(home: Path) -> None:
    """Few vectors stand outside a block, so that a scan reads few rows."""
    from hermes.plugins.memory.local.embedding.vectors import LOOSE

    store, _, _ = filled(home, 2_000)
    with store._connections.read() as db:
        assert db is not None
        (loose,) = db.execute("SELECT count(*) FROM vectors WHERE block IS NULL").fetchone()
        (packed,) = db.execute("SELECT sum(count) FROM vector_blocks").fetchone()
    store.close()
    assert loose < LOOSE
    assert loose + packed == 2_000


def test_memory_is_bounded_by_the_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is read for each question, and found all the same."""
    monkeypatch.setattr("hermes.plugins.memory.local.embedding.vectors.BLOCK", 600)
    store, order, vectors = filled(home, 3_000, memory=20_000)
    with store.view("owner") as view:
        assert view is not None
        kept = view.vectors("random")
        assert kept is not None
        assert [next(iter(kept.nearest(vectors[i], 1))) for i in (0, 1_500, 2_999)] == [
            order[0],
            order[1_500],
            order[2_999],
        ]
    assert 0 < store._scan_cache().bytes <= 20_000
    store.close()


def test_what_another_process_stored_is_seen(home: Path) -> None:
    """A block that was changed elsewhere is read anew."""
    store, order, vectors = filled(home, 1_200)
    other = SqliteStore(home / "local" / "memory.db")
    for opened in (store, other):
        with opened.view("owner") as view:
            assert view is not None
            kept = view.vectors("random")
            assert kept is not None
            assert next(iter(kept.nearest(vectors[7], 1))) == order[7]
    other.forget(None, ids=[order[7]])
    with store.view("owner") as view:
        assert view is not None
        kept = view.vectors("random")
        assert kept is not None
        assert order[7] not in kept.nearest(vectors[7], 50)
    store.close()
    other.close()
