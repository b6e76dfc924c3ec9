"""The scan over the vectors of ``local``: what a question costs where very many messages are embedded.

    python benchmarks/vectors.py [--vectors 100000] [--million] [--queries 100] [--json]

Needs numpy. The vectors are made up: many centres with some vectors around each, 384 numbers long. They are
put into the tables of a store as the background would put them; what is measured is the CPU time of
``nearest`` and how many of the ten nearest by exact cosine it finds. The first question reads the codes
from the file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hermes.plugins.memory.local.records import Turn
from hermes.plugins.memory.local.store import SqliteStore

WIDTH = 384
AROUND = 12
AT_ONCE = 16_384


def fill(store: SqliteStore, count: int) -> Any:
    """Put *count* vectors into *store*; all of them, as bytes."""
    import numpy as np

    from hermes.plugins.memory.local.embedding import vectors
    from hermes.plugins.memory.local.embedding.calibration import Calibration
    from hermes.plugins.memory.local.embedding.encoder import Traits

    store.add([Turn("s", "text", "", 1.0)], "owner")
    model = store.vectors().take_up(
        Traits("made up", WIDTH), "{}", lambda: Calibration(np.zeros(WIDTH, np.float32), 0.5)
    )
    chance, kept = np.random.default_rng(1), []
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        centres = np.repeat(chance.standard_normal((size // AROUND + 1, WIDTH), np.float32), AROUND, axis=0)[
            :size
        ]
        made = centres + 0.8 * chance.standard_normal((size, WIDTH), np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        codes = np.clip(np.rint(made * vectors.scale(WIDTH)), -127, 127).astype(np.int8)
        ids = (np.arange(start, start + size, dtype="<i8") + (1 << 21)) << 7
        block = start // AT_ONCE + 1
        with store._connections.write() as db:
            db.execute(
                "INSERT INTO vector_blocks (id, slot, scope, count, ids, bits) VALUES (?, 0, 1, ?, ?, ?)",
                (block, size, ids.tobytes(), vectors.bits(codes, model).tobytes()),
            )
            db.executemany(
                "INSERT INTO vectors VALUES (?, 0, 1, ?, ?, x'')",
                ((i, block, code.tobytes()) for i, code in zip(ids.tolist(), codes, strict=True)),
            )
        kept.append(codes)
    return np.concatenate(kept)


def ask(store: SqliteStore, codes: Any, queries: int) -> dict[str, float]:
    """CPU of a question in milliseconds, and the share of the ten nearest that is found."""
    import numpy as np

    chance = np.random.default_rng(2)
    took, shares = [], []
    for i in range(queries):
        near = codes[chance.integers(len(codes))].astype(np.float32)
        asked = near / np.linalg.norm(near) + 0.03 * chance.standard_normal(WIDTH).astype(np.float32)
        asked /= np.linalg.norm(asked)
        with store.view("owner") as view:
            assert view is not None
            start = time.process_time()
            kept = view.vectors("made up")
            assert kept is not None
            found = kept.nearest(asked, 100)
            took.append(1000 * (time.process_time() - start))
        if i < 20:
            exact = np.concatenate(
                [codes[s : s + AT_ONCE].astype(np.float32) @ asked for s in range(0, len(codes), AT_ONCE)]
            )
            best = {int(n) + (1 << 21) for n in np.argpartition(-exact, 10)[:10]}
            shares.append(len(best & set(list(found)[:10])) / 10)
    later = sorted(took[1:])
    return {
        "first": took[0],
        "p50": later[len(later) // 2],
        "p99": later[int(len(later) * 0.99)],
        "found of ten": 100 * statistics.fmean(shares),
    }


def main() -> int:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--million", action="store_true", help="1,000,000 vectors: a minute")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    count = 1_000_000 if args.million else args.vectors
    if importlib.util.find_spec("numpy") is None:
        print("numpy is not installed: pip install 'hermes-framework[semantic]'")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "local" / "memory.db")
        figures: dict[str, Any] = {"vectors": count} | ask(store, fill(store, count), args.queries)
        figures["MB in memory"] = store._scan_cache().bytes / 1e6
        figures["MB on disk"] = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()) / 1e6
        store.close()
    figures["MB of the process at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps(figures) if args.json else "\n".join(f"{k:28s} {v:,.1f}" for k, v in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
