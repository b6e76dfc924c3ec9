"""The ``local`` provider with very many turns: how fast they go in, what a question costs, beside plain
FTS5.

    python benchmarks/scale.py [--turns 100000] [--million] [--queries 200] [--json]

The turns are made up: sentences of 5 to 40 words whose frequencies fall as in real text (Zipf), in
sessions of 25. A question takes some telling words of a stored turn and puts ordinary ones around them.
All times are CPU times of this process; plain FTS5 (porter stems, any word, ranked by SQLite) answers the
same questions in the same run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.plugins.memory.local.provider import LocalMemoryProvider

ORDINARY = (
    "the a to and of in is it that was i you for on with we have this be at my not are but do what so he she"
    " they will would there from had all can about when which just if out up said"
)
BATCH = 1_000
PER_SESSION = 25


class Text:
    """Made-up sentences, the same at every run."""

    def __init__(self, seed: int = 7, words: int = 40_000) -> None:
        self.random = random.Random(seed)
        parts = ["".join(p) for p in itertools.product("bdfgklmnprstvz", "aeiou")]
        made = {"".join(self.random.choices(parts, k=self.random.randint(2, 4))) for _ in range(words)}
        self.ordinary = ORDINARY.split()
        telling = sorted(made)
        self.random.shuffle(telling)
        self.words = [*self.ordinary, *telling]
        self.weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def sentence(self) -> str:
        """One turn's text."""
        return " ".join(
            self.random.choices(self.words, cum_weights=self.weights, k=self.random.randint(5, 40))
        )

    def question(self, about: str) -> str:
        """Some telling words of *about* among ordinary ones."""
        telling = [w for w in about.split() if w not in self.ordinary] or about.split()
        chosen = self.random.sample(telling, min(len(telling), self.random.randint(3, 7)))
        words = chosen + self.random.sample(self.ordinary, 5)
        self.random.shuffle(words)
        return " ".join(words) + "?"


def turns(text: Text, count: int) -> Iterator[dict[str, Any]]:
    """Turns as the host hands them over."""
    for i in range(count):
        yield {
            "user_content": text.sentence(),
            "assistant_content": "",
            "session_id": f"session-{i // PER_SESSION}",
            "idempotency_key": f"key-{i}",
            "turn_time": 1_700_000_000.0 + 60 * i,
        }


def percentiles(values: list[float]) -> dict[str, float]:
    """Median, 99th and worst, in milliseconds."""
    ordered = sorted(1000 * v for v in values)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[int(len(ordered) * 0.99)], "max": ordered[-1]}


def fill(
    provider: LocalMemoryProvider, plain: sqlite3.Connection, count: int
) -> tuple[dict[str, float], list[str]]:
    """Store *count* turns in both; turns per CPU second, and a sample of what was said."""
    text = Text()
    sample: list[str] = []
    spent = plain_spent = 0.0
    source = turns(text, count)
    while batch := list(itertools.islice(source, BATCH)):
        start = time.process_time()
        provider.sync_turns(batch)
        middle = time.process_time()
        plain.executemany("INSERT INTO f VALUES (?)", [(t["user_content"],) for t in batch])
        plain.commit()
        plain_spent += time.process_time() - middle
        spent += middle - start
        sample.extend(t["user_content"] for t in batch[:: BATCH // 10])
    return {"bulk": count / spent, "bulk, plain FTS5": count / plain_spent}, sample


def singles(provider: LocalMemoryProvider, count: int = 500) -> float:
    """Turns per CPU second, each durable by itself."""
    given = [
        t | {"session_id": "live", "idempotency_key": f"live-{i}"} for i, t in enumerate(turns(Text(), count))
    ]
    start = time.process_time()
    for turn in given:
        provider.sync_turn(**turn)
    return count / (time.process_time() - start)


def ask(
    provider: LocalMemoryProvider, plain: sqlite3.Connection, sample: list[str], count: int
) -> dict[str, Any]:
    """CPU of a question in both, and how often the turn that it was made from is among the first ten."""
    text = Text(11)
    own: list[float] = []
    theirs: list[float] = []
    found = 0
    for about in text.random.sample(sample, min(count, len(sample))):
        question = text.question(about)
        start = time.process_time()
        block = provider.prefetch(question)
        own.append(time.process_time() - start)
        records = provider.search_records(question, limit=10) or []
        found += any(r["text"] == about for r in records)
        words = [w for w in question.rstrip("?").split() if w not in text.ordinary]
        query = " OR ".join(f'"{w}"' for w in words)
        start = time.process_time()
        plain.execute("SELECT rowid FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10", (query,)).fetchall()
        theirs.append(time.process_time() - start)
        assert block or not records
    figures: dict[str, Any] = {"prefetch": percentiles(own), "plain FTS5": percentiles(theirs)}
    figures["ratio p50"] = figures["prefetch"]["p50"] / figures["plain FTS5"]["p50"]
    figures["found"] = 100 * found / len(own)
    return figures


def forget(provider: LocalMemoryProvider) -> dict[str, float]:
    """CPU seconds to delete one session down to the bytes."""
    start = time.process_time()
    gone = provider.forget_records(session_id="session-1") or 0
    return {"messages": gone, "seconds": time.process_time() - start}


def main() -> int:
    """Run it and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--million", action="store_true", help="1,000,000 turns: some minutes")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    count = 1_000_000 if args.million else args.turns
    with tempfile.TemporaryDirectory() as folder:
        provider = LocalMemoryProvider()
        provider.initialize("benchmark", hermes_home=folder, platform="cli")
        plain = sqlite3.connect(Path(folder) / "plain.db")
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("CREATE VIRTUAL TABLE f USING fts5 (text, tokenize = 'porter unicode61')")
        rates, sample = fill(provider, plain, count)
        figures = {
            "turns": count,
            "turns per CPU second": rates | {"single": singles(provider)},
            "query, CPU ms": ask(provider, plain, sample, args.queries),
            "forget one session, CPU s": forget(provider),
            "MB": provider.get_status_config({})["bytes"] / 1e6,
        }
        provider.shutdown()
        plain.close()
    if args.json:
        print(json.dumps(figures))
        return 0
    for name, value in figures.items():
        print(f"{name:28s} {_shown(value)}")
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(
            f"{k} {_shown(v) if not isinstance(v, dict) else '(' + _shown(v) + ')'}" for k, v in value.items()
        )
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
