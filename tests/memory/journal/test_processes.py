"""Several processes at one journal, and processes that are killed: what was acknowledged arrives, in order, once."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.memory.journal import Journal, Sent, State
from tests.memory.journal.program import Backend
from tests.memory.journal.support import Bench, Taker, turn

ROOT = Path(__file__).resolve().parents[3]


def program(*words: str | Path) -> subprocess.Popen[bytes]:
    """Start the program in a process of its own."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    command = [sys.executable, "-m", "tests.memory.journal.program", *map(str, words)]
    return subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def taken(store: Path) -> list[tuple[str, str, str]]:
    """What the backend has: session, kind and text, in the order in which it came."""
    con = sqlite3.connect(store)
    found = con.execute("SELECT session, kind, text FROM taken ORDER BY place").fetchall()
    con.close()
    return found


def test_eight_processes_append_and_everything_is_delivered_once(tmp_path: Path) -> None:
    """Eight processes append a thousand turns each: eight thousand arrive, each once, each session in order."""
    path = tmp_path / "journal.db"
    children = [program("append", path, f"p{number}", "1000") for number in range(8)]
    for child in children:
        _, errors = child.communicate(timeout=110)
        assert (child.returncode, errors) == (0, b"")
    taker = Taker()
    bench = Bench(path, taker)
    bench.settle()
    turns = [record for record in taker.got if record.kind == "turn"]
    assert len(turns) == len({record.key for record in turns}) == 8000
    for number in range(8):
        assert taker.said(f"p{number}") == [str(n) for n in range(1000)]
    assert sorted(r.session_id for r in taker.got if r.kind == "session_end") == [f"p{n}" for n in range(8)]
    assert bench.undelivered() == 0
    bench.journal.close()


def killed_at_random(tmp_path: Path, kills: int, seed: int, how: str) -> dict[str, set[int]]:
    """Run the program *kills* times on one journal and kill each; run to the numbers of its safe turns."""
    rng = random.Random(seed)
    path, store = tmp_path / "journal.db", tmp_path / "store.db"
    safe: dict[str, set[int]] = {}
    for number in range(kills):
        child = program("converse", path, store, f"r{number}", "50", how)
        assert child.stdout is not None
        assert child.stderr is not None
        wanted = rng.randrange(51)
        told: list[bytes] = []
        while len(told) < wanted and (line := child.stdout.readline()):
            told.append(line)
        for _ in range(rng.randrange(20_000)):  # up to a millisecond: within an append, a commit, a delivery
            pass
        child.kill()
        rest, errors = child.communicate(timeout=60)
        assert errors == b""
        lines = b"".join(told) + rest
        safe[f"r{number}"] = {int(line) for line in lines.split() if line != b"done"}
    return safe


def check_kills(tmp_path: Path, kills: int, seed: int) -> None:
    """Kill the program again and again, then deliver the rest, and compare."""
    safe = killed_at_random(tmp_path, kills, seed, "stored")
    bench = Bench(tmp_path / "journal.db", Taker())
    backend = Backend(tmp_path / "store.db")
    bench.taker.refuse = lambda record: None if backend(record) is Sent.STORED else RuntimeError()
    bench.settle()
    assert bench.undelivered() == 0
    bench.journal.close()
    arrived = taken(tmp_path / "store.db")
    backend.con.close()
    for run, acknowledged in safe.items():
        for half in (0, 1):
            texts = [
                int(text) for session, kind, text in arrived if (session, kind) == (f"{run}-{half}", "turn")
            ]
            assert texts == sorted(set(texts)), "out of order, or twice"
            assert {n for n in acknowledged if n % 2 == half} <= set(texts), "an acknowledged turn is lost"
            assert texts == list(range(half, half + 2 * len(texts), 2)), "a gap"
            ends = [
                text for session, kind, text in arrived if (session, kind) == (f"{run}-{half}", "session_end")
            ]
            assert ends == ([str(2 * len(texts))] if texts else []), "the end comes once, with every turn"


def test_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """Twenty kills: no acknowledged turn is lost, none out of order, none twice, every session ends once."""
    check_kills(tmp_path, 20, seed=1)


@pytest.mark.long
def test_kill_at_many_moments_loses_nothing(tmp_path: Path) -> None:
    """The same, two hundred times."""
    check_kills(tmp_path, 200, seed=2)


def test_what_an_accepting_provider_lost_is_still_in_the_journal(tmp_path: Path) -> None:
    """A provider that only accepts and is killed: every acknowledged turn waits or is listed as handed over."""
    safe = killed_at_random(tmp_path, 4, 3, "accepted")
    with Journal(tmp_path / "journal.db") as journal:
        there = {record.key: record.state for record in journal.records(limit=10_000)}
        for run, acknowledged in safe.items():
            for number in acknowledged:
                assert there[f"{run}-{number}"] in (State.PENDING, State.HANDED_OVER)


def test_the_lease_of_a_killed_process_is_taken_over_at_once(tmp_path: Path) -> None:
    """A process that was killed while it delivered keeps nobody waiting; one that lives does."""
    path = tmp_path / "journal.db"
    child = program("converse", path, tmp_path / "store.db", "r", "50", "stored")
    assert child.stdout is not None
    for _ in range(5):
        child.stdout.readline()
    bench = Bench(path, Taker())
    bench.run(20, until=lambda: bool(bench.taker.got))
    assert bench.taker.got == [], "the living process delivers"
    child.kill()
    child.communicate(timeout=60)
    bench.run(20)
    assert bench.taker.got
    assert bench.undelivered() == 0
    bench.journal.close()


def test_two_openers_deliver_in_turn_and_in_order(tmp_path: Path) -> None:
    """While one delivers the other waits; when the first leaves, the second goes on where it stopped."""
    first, second = Bench(tmp_path / "journal.db", Taker()), Bench(tmp_path / "journal.db", Taker())
    first.journal.append([turn(str(n)) for n in range(3)])
    first.settle()
    second.journal.append([turn(str(n)) for n in range(3, 6)])
    second.run(20)
    assert second.taker.got == []
    first.run(2)
    assert first.taker.said() == [str(n) for n in range(6)]
    second.journal.append([turn("6")])
    first.deliverer.stop(1)
    first.journal.close()
    second.run(20)
    assert second.taker.said() == ["6"]
    second.journal.close()


def test_a_deliverer_that_is_stuck_loses_its_lease(tmp_path: Path) -> None:
    """One that gave no sign of life for minutes is relieved, and notices."""
    first, second = Bench(tmp_path / "journal.db", Taker()), Bench(tmp_path / "journal.db", Taker())
    first.journal.append([turn("0")])
    first.settle()
    first.journal.append([turn("1")])
    second.run(100)
    assert second.taker.got == []
    second.run(400)
    assert second.taker.said() == ["1"]
    first.clock.pass_(500)
    first.journal.append([turn("2")])
    first.run(30)
    assert first.taker.said() == ["0"]
    assert first.journal.append([turn("3")]).durable
    second.run(20)
    assert second.taker.said() == ["1", "2", "3"]
    first.journal.close()
    second.journal.close()


def test_accepted_is_what_it_is_called(tmp_path: Path) -> None:
    """The kind of sending decides what is kept."""
    bench = Bench(tmp_path / "journal.db", Taker(Sent.ACCEPTED))
    bench.journal.append([turn("0")])
    bench.settle()
    assert bench.journal.stats().handed_over == 1
    bench.journal.close()
