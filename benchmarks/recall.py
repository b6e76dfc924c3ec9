"""How much of the evidence for a question the ``local`` provider finds. No model judges anything.

    python benchmarks/recall.py --data FOLDER [--dataset locomo|mbank-en|mbank-zh] [--merged] [--ablate]
                                [--leave-one-out] [--model FOLDER] [--json]

FOLDER holds locomo-1-5.json, memory_bank_en.json, memory_bank_cn.json and mbank_labels.json. The real
provider is driven: turns go in through ``sync_turns``, questions through ``search_records``. R@k is the
share of a question's evidence among the first k records, averaged over the questions; CPU is the
process's, milliseconds a question. ``--ablate`` leaves out one part of the ranking at a time; ``--leave-
one-out`` chooses the weights for each conversation on all the others. With ``--model`` the tiers that use
it are measured too; each text is embedded once for all of them, and a question each time it is asked.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.ranking import Weights

DEPTH = 20
_STOP = """
a an the and or of in on at to for from by with about is are was were be do does did have has had i you he
she it we they me my your his her its our their this that what which who whom when where why how
"""
STOP = frozenset(_STOP.split())
_LOCOMO_DATE = re.compile(r"\s*(\d+):(\d+)\s*(am|pm)\s+on\s+(\d+)\s+(\w+),?\s+(\d{4})", re.I)


class Message(NamedTuple):
    """One message of a conversation; *pair* numbers the turn it belongs to."""

    id: str
    author: str
    role: str
    text: str
    pair: int


class Conversation(NamedTuple):
    """Sessions (name -> time and messages), and questions (text, ids of the evidence)."""

    name: str
    sessions: dict[str, tuple[float, list[Message]]]
    questions: list[tuple[str, frozenset[str]]]


class Result(NamedTuple):
    """One question's figures."""

    conversation: str
    recall: dict[int, float]
    rank: float
    cpu: float


# -- data -------------------------------------------------------------------------------------------------


def locomo(folder: Path) -> list[Conversation]:
    """The five conversations of LoCoMo: two people in turn."""
    return [_locomo_conversation(s) for s in json.loads((folder / "locomo-1-5.json").read_text())]


def _locomo_conversation(sample: dict[str, Any]) -> Conversation:
    talk, name = sample["conversation"], sample["sample_id"]
    sessions: dict[str, tuple[float, list[Message]]] = {}
    known = set()
    for key in sorted((k for k in talk if re.fullmatch(r"session_\d+", k)), key=lambda k: int(k[8:])):
        messages = []
        for i, turn in enumerate(talk[key]):
            image = f" [shared image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            session, place = map(int, re.findall(r"\d+", turn["dia_id"]))
            mid = f"{name}/D{session}:{place}"
            known.add(mid)
            messages.append(Message(mid, turn["speaker"], "user", (turn["text"].strip() + image).strip(), i))
        sessions[f"{name}/{key}"] = _locomo_time(talk.get(f"{key}_date_time", "")), messages
    questions = []
    for asked in sample["qa"]:
        spots = [m for e in asked.get("evidence") or [] for m in re.findall(r"D:?(\d+):(\d+)", e)]
        gold = frozenset(f"{name}/D{int(s)}:{int(p)}" for s, p in spots) & known
        if gold:
            questions.append((asked["question"], gold))
    return Conversation(name, sessions, questions)


def _locomo_time(written: str) -> float:
    match = _LOCOMO_DATE.match(written)
    if not match:
        return 0.0
    hour, minute, half, day, month, year = match.groups()
    hour = int(hour) % 12 + (12 if half.lower() == "pm" else 0)
    return datetime.strptime(f"{day} {month} {year} {hour}:{minute}", "%d %B %Y %H:%M").timestamp()


def memory_bank(folder: Path, language: str) -> list[Conversation]:
    """Fifteen people and their assistant, in English or Chinese; three of them with labelled questions."""
    data = json.loads((folder / f"memory_bank_{'cn' if language == 'zh' else 'en'}.json").read_text())
    labels = json.loads((folder / "mbank_labels.json").read_text())[language]
    found = []
    for person, about in data.items():
        sessions = {}
        for day, pairs in about["history"].items():
            messages = []
            for i, pair in enumerate(pairs):
                messages.append(Message(f"{person}/{day}/{2 * i}", person, "user", pair["query"], i))
                messages.append(
                    Message(f"{person}/{day}/{2 * i + 1}", "AI", "assistant", pair["response"], i)
                )
            sessions[f"{person}/{day}"] = datetime.fromisoformat(f"{day}T12:00:00").timestamp(), messages
        known = {m.id for _, ms in sessions.values() for m in ms}
        questions = [
            (q["q"], frozenset(f"{person}/{g}" for g in q["gold"]) & known) for q in labels.get(person, [])
        ]
        found.append(Conversation(person, sessions, [q for q in questions if q[1]]))
    return found


# -- systems ----------------------------------------------------------------------------------------------


class Local:
    """The provider under test."""

    def __init__(
        self, home: Path, weights: Weights | None = None, *, model: Path | None = None, tier: str = "lexical"
    ) -> None:
        settings = {"local": {"tier": tier, "model": str(model or "")}}
        self.provider = LocalMemoryProvider(weights=weights, config=lambda: settings)
        self.provider.initialize("benchmark", hermes_home=str(home), platform="cli")
        self.provider.initialize_for_inspection("benchmark", hermes_home=str(home), platform="cli")
        self.ids: dict[int, str] = {}
        if tier != "lexical":
            assert self.provider.meaning is not None, self.provider.get_status_config({})
            self.provider.meaning.use(_remembering(model))

    def add(self, conversations: Iterable[Conversation]) -> None:
        """Store every session, and learn which record is which message."""
        expected: dict[str, list[str]] = {}
        for conversation in conversations:
            for session, (said_at, messages) in conversation.sessions.items():
                pairs: dict[int, dict[str, Any]] = {}
                for m in messages:
                    turn = pairs.setdefault(m.pair, {"session_id": session, "turn_time": said_at})
                    turn[f"{m.role}_content"] = m.text
                    if m.role == "user":
                        turn["turn_author"] = m.author
                self.provider.sync_turns(pairs.values())
                expected[session] = [m.id for m in messages if m.text.strip()]
        if self.provider.meaning is not None:
            assert self.provider.meaning.embedder.catch_up()
        for record in self.provider.export_records():
            self.ids[record["id"]] = expected[record["session_id"]].pop(0)

    def search(self, asked: str) -> list[str]:
        """Ids of messages, best first."""
        return [self.ids[r["id"]] for r in self.provider.search_records(asked, limit=DEPTH) or []]

    def close(self) -> None:
        """Close the store."""
        self.provider.shutdown()


class Remembering:
    """An encoder that embeds each text once for all runs."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        self.known: dict[Any, Any] = {}
        self.traits = encoder.traits
        self.calibration_file = encoder.calibration_file
        self.vocabulary = encoder.vocabulary
        self.encode_question = encoder.encode_question

    def encode(self, said: Sequence[Any]) -> list[Any]:
        """The vectors of texts."""
        new = [one for one in dict.fromkeys(said) if one not in self.known]
        self.known.update(zip(new, self.encoder.encode(new), strict=True))
        return [self.known[one] for one in said]


@functools.cache
def _remembering(model: Path) -> Remembering:
    from hermes.plugins.memory.local.embedding.onnx_model import OnnxEncoder

    return Remembering(OnnxEncoder(model))


class PlainFts5:
    """What is compared with: SQLite's own ranking over porter stems, any word of the question."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(home / "plain.db")
        self.db.execute(
            "CREATE VIRTUAL TABLE f USING fts5 (text, id UNINDEXED, tokenize = 'porter unicode61')"
        )

    def add(self, conversations: Iterable[Conversation]) -> None:
        """Store every message with its speaker's name."""
        rows = [
            (f"{m.author}: {m.text}", m.id)
            for c in conversations
            for _, messages in c.sessions.values()
            for m in messages
        ]
        self.db.executemany("INSERT INTO f VALUES (?, ?)", rows)
        self.db.commit()

    def search(self, asked: str) -> list[str]:
        """Ids of messages, best first."""
        words = re.findall(r"\w+", asked.lower())
        query = " OR ".join(f'"{w}"' for w in dict.fromkeys([w for w in words if w not in STOP] or words))
        found = self.db.execute("SELECT id FROM f WHERE f MATCH ? ORDER BY rank LIMIT ?", (query, DEPTH))
        return [row[0] for row in found] if query else []

    def close(self) -> None:
        """Close the database."""
        self.db.close()


# -- measuring --------------------------------------------------------------------------------------------


def measure(make: Callable[[Path], Any], conversations: Sequence[Conversation], merged: bool) -> list[Result]:
    """Ask every question of a store per conversation, or of one store for all."""
    results = []
    for group in [conversations] if merged else [[c] for c in conversations]:
        if not any(c.questions for c in group):
            continue
        with tempfile.TemporaryDirectory() as folder:
            system = make(Path(folder) / "home")
            system.add(group)
            for conversation in group:
                for asked, gold in conversation.questions:
                    start = time.process_time()
                    found = system.search(asked)
                    results.append(_result(conversation.name, found, gold, time.process_time() - start))
            system.close()
    return results


def _result(conversation: str, found: Sequence[str], gold: frozenset[str], cpu: float) -> Result:
    recall = {k: len(gold & set(found[:k])) / len(gold) for k in (1, 5, 10, 20)}
    rank = next((1 / (i + 1) for i, message in enumerate(found) if message in gold), 0.0)
    return Result(conversation, recall, rank, cpu)


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Percentages, and CPU in milliseconds."""
    figures = {f"R@{k}": 100 * statistics.fmean(r.recall[k] for r in results) for k in (1, 5, 10, 20)}
    cpu = sorted(1000 * r.cpu for r in results)
    figures |= {
        "MRR": 100 * statistics.fmean(r.rank for r in results),
        "cpu p50": cpu[len(cpu) // 2],
        "cpu p99": cpu[int(len(cpu) * 0.99)],
        "n": len(results),
    }
    return figures


def show(name: str, figures: dict[str, float]) -> None:
    """One line of the table."""
    shown = "  ".join(
        f"{key} {value:6.2f}" if key != "n" else f"n {value:4.0f}" for key, value in figures.items()
    )
    print(f"{name:28s} {shown}", flush=True)


ABLATIONS: dict[str, dict[str, Any]] = {
    "without neighbours": {"spread": ()},
    "without author": {"author": 0.0},
    "without user prior": {"user": 0.0},
    "without asked role": {"asked_role": 0.0},
    "without session lift": {"session": 0.0},
    "without dates": {"when": 0.0},
    "without telling when": {"tells_when": 0.0},
}
WITH_A_MODEL: dict[str, dict[str, Any]] = {
    "without neighbours": {"spread": ()},
    "without meaning": {"meaning": 0.0},
    "without tokens": {"tokens": 0.0},
    "signs as with words alone": {"surer": 1.0},
    "without session lift": {"session": 0.0},
}
GRID_WITH_A_MODEL: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "meaning x1.5": {"meaning": 1.5 * Weights().meaning},
    "meaning x0.5": {"meaning": 0.5 * Weights().meaning},
    "tokens x1.5": {"tokens": 1.5 * Weights().tokens},
    "tokens x0.67": {"tokens": 0.67 * Weights().tokens},
    "surer 1.5": {"surer": 1.5},
    "surer 2.5": {"surer": 2.5},
}
GRID: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "author x2": {"author": 2 * Weights().author},
    "session x2": {"session": 2 * Weights().session},
    "session x0.5": {"session": Weights().session / 2},
    "spread x0.75": {"spread": tuple(0.75 * w for w in Weights().spread)},
    "spread x1.25": {"spread": tuple(1.25 * w for w in Weights().spread)},
    "tells when x2": {"tells_when": 2 * Weights().tells_when},
    "length .5": {"length": 0.5},
}


def with_weights(
    changed: dict[str, Any], model: Path | None = None, tier: str = "lexical"
) -> Callable[[Path], Local]:
    """A maker of the provider with some weights changed."""
    return lambda home: Local(home, dataclasses.replace(Weights(), **changed), model=model, tier=tier)


def leave_one_out(conversations: Sequence[Conversation], model: Path | None) -> None:
    """Choose among the weights of a grid on the other conversations, and count on the one left out."""
    grid, tier = (GRID_WITH_A_MODEL, "late-interaction") if model else (GRID, "lexical")
    runs = {
        name: measure(with_weights(changed, model, tier), conversations, False)
        for name, changed in grid.items()
    }
    held_out = []
    for left in conversations:
        others = {n: [r.recall[10] for r in rs if r.conversation != left.name] for n, rs in runs.items()}
        chosen = max(others, key=lambda n: statistics.fmean(others[n]))
        own = [r for r in runs[chosen] if r.conversation == left.name]
        if own:
            show(f"{left.name}: {chosen}", summary(own))
            held_out.extend(own)
    show("left out, all", summary(held_out))


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--dataset", choices=["locomo", "mbank-en", "mbank-zh"], default="locomo")
    parser.add_argument("--merged", action="store_true", help="one store for all conversations")
    parser.add_argument("--ablate", action="store_true", help="leave out one part at a time")
    parser.add_argument(
        "--leave-one-out", action="store_true", help="choose weights on the other conversations"
    )
    parser.add_argument("--model", type=Path, help="a folder with model.onnx and tokenizer.json")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    conversations = (
        locomo(args.data) if args.dataset == "locomo" else memory_bank(args.data, args.dataset[-2:])
    )
    merged = args.merged or args.dataset != "locomo"
    if args.leave_one_out:
        leave_one_out(conversations, args.model)
        return 0
    systems: dict[str, Callable[[Path], Any]] = {"plain FTS5": PlainFts5, "local": Local}
    tier = "lexical"
    if args.model:
        systems |= {t: with_weights({}, args.model, t) for t in ("semantic", "late-interaction")}
        tier = "late-interaction"
    if args.ablate:
        left_out = WITH_A_MODEL if args.model else ABLATIONS
        systems |= {name: with_weights(changed, args.model, tier) for name, changed in left_out.items()}
    table = {name: summary(measure(make, conversations, merged)) for name, make in systems.items()}
    if args.json:
        print(json.dumps(table))
    else:
        for name, figures in table.items():
            show(name, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
