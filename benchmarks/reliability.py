"""What the journal costs, and what is lost: every figure beside a plain one taken in the same run.

``--kills N`` for more than the usual ten processes that are killed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hermes.memory.journal import Deliverer, Entry, Journal, Kind, Record, Sent
from hermes.memory.journal.circuit import Backoff
from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from hermes.testing import RecordingProvider

PROVIDER = "probe"
SAID = "Please move the weekly review to Thursday at ten, and tell Ada that the kiln is booked. " * 3
TURNS, PACE, DELIVERY = 50, 0.004, 0.02
"""Turns of a process that is killed, seconds between two of them, and what delivering one takes."""


def entry(session: str = "s1", number: int = 0) -> Entry:
    """A turn of ordinary length."""
    payload = {"user": f"{number} {SAID}", "assistant": SAID, "messages": None}
    return Entry(Kind.TURN, PROVIDER, session, payload, os.urandom(8).hex(), time.time())


class Quiet(RecordingProvider):
    """Takes everything and remembers nothing."""

    def _record(self, member: str, **given: Any) -> None:
        return


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk that this file lies on."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        yield Path(name)


def timed(action: Callable[[], object]) -> float:
    """Seconds that *action* takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def bare(home: Path) -> Callable[[], object]:
    """One row of the same size committed with synchronous=FULL, and nothing else."""
    con = sqlite3.connect(home / "bare.db", isolation_level=None)
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("PRAGMA synchronous = FULL")
    con.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    text = SAID * 2

    def commit() -> None:
        con.execute("BEGIN IMMEDIATE")
        con.execute("INSERT INTO t (b) VALUES (?)", (text,))
        con.execute("COMMIT")

    return commit


def cost_of_one(home: Path, rounds: int = 1500) -> None:
    """One turn against one bare commit, taken in turn."""
    journal = Journal(home / "journal.db")
    manager = MemoryManager(journal=Journal(home / "managed.db"))
    manager.add_provider(Quiet())
    manager.initialize_all("s1")
    ways: dict[str, Callable[[], object]] = {
        "a bare commit": bare(home),
        "journal.append": lambda: journal.append([entry()]),
        "sync_all": lambda: manager.sync_all(SAID, SAID),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(timed(way))
            if name == "sync_all":
                manager.flush_pending(5)  # else its delivery would be timed with the next commit
    unit = statistics.median(taken["a bare commit"][rounds // 3 :])
    for name, values in taken.items():
        median = statistics.median(values[rounds // 3 :])
        print(f"{name:<44}{median * 1e6:9.0f} us {median / unit:7.2f}x   (target for a turn: at most 1.5x)")
    manager.shutdown_all()
    journal.close()


def threads_together(home: Path, each: int = 400, rounds: int = 5) -> None:
    """Eight threads against one, in turns a second."""
    ratios = []
    with Journal(home / "journal.db") as journal:

        def work(ready: list[Entry]) -> None:
            for one in ready:
                journal.append([one])

        def rate(threads: int) -> float:
            ready = [[entry(f"t{name}") for _ in range(each)] for name in range(threads)]
            workers = [threading.Thread(target=work, args=(ready[n],)) for n in range(threads)]
            start = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            return threads * each / (time.perf_counter() - start)

        rate(8)
        for _ in range(rounds):
            one, eight = rate(1), rate(8)
            ratios.append(eight / one)
    print(
        f"{'eight threads against one':<44}{eight:9.0f} /s {statistics.median(ratios):7.2f}x   (target: 4x)"
    )


def backlog(home: Path, number: int = 100_000) -> None:
    """A hundred thousand undelivered turns: how fast they are written, what they cost, how fast it opens."""
    path = home / "journal.db"
    with Journal(path) as journal:
        journal.append([entry(f"s{n % 50}", n) for n in range(1000)])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = 0.0
        for start in range(1000, number, 1000):
            some = [entry(f"s{n % 50}", n) for n in range(start, start + 1000)]
            seconds += timed(lambda some=some: journal.append(some))  # type: ignore[misc]
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{'turns a second, by the batch':<44}{(number - 1000) / seconds:9.0f} /s            (target: 20000/s)"
    )
    print(f"{'memory grown over 100,000 undelivered turns':<44}{grown:9.1f} MB")
    opened = Journal(path)
    opened.close()

    def open_and_find_the_first() -> None:
        with Journal(path) as journal:
            sent: list[Record] = []

            def send(record: Record) -> Sent:
                sent.append(record)
                return Sent.STORED

            deliverer = Deliverer(journal, send, providers=lambda: [PROVIDER])
            while not sent:
                deliverer.step()

    opening = statistics.median(timed(open_and_find_the_first) for _ in range(5)) * 1000
    print(f"{'opening it, and the first delivery':<44}{opening:9.1f} ms            (target: under 100 ms)")


class Clock:
    """A clock that is moved by hand."""

    now = 1_700_000_000.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def outage(home: Path, days: int = 3) -> None:
    """A backend that is down for days while a turn is said every ten minutes; then it is back."""
    clock, got, down = Clock(), list[str](), [True]

    def send(record: Record) -> Sent:
        if down[0]:
            raise ConnectionError("down")
        got.append(record.payload["user"])
        return Sent.STORED

    with Journal(home / "journal.db", clock=clock) as journal:
        deliverer = Deliverer(
            journal,
            send,
            providers=lambda: [PROVIDER],
            monotonic=clock,
            backoff=Backoff(rng=random.Random(1)),
        )

        def run(seconds: float) -> None:
            end = clock.now + seconds
            while clock.now < end:
                pause = deliverer.step()
                clock.now += max(pause, 5.0) if pause else 0.0

        waits: dict[bool, list[float]] = {True: [], False: []}

        def say(session: str, number: int) -> None:
            waits[down[0]].append(timed(lambda: journal.append([entry(session, number)])))
            clock.now += 570
            run(30)

        said = [f"{number} {SAID}" for number in range(days * 144)]
        for number in range(len(said)):
            say("s1", number)
        attempts = journal.records(limit=1)[0].attempts
        down[0] = False
        run(700)
        arrived, right = len(got), got == said
        for number in range(len(said)):
            say("s2", number)
    ratio = statistics.median(waits[True]) / statistics.median(waits[False])
    order = "in order" if right else "OUT OF ORDER"
    print(
        f"{f'{days} days without a backend':<44}{arrived:6d} of {len(said)} delivered, {order}, {attempts} tries"
    )
    print(f"{'a turn meanwhile, against its usual time':<44}{ratio:9.2f}x")


def child(home: Path, how: str) -> None:
    """The process that is killed: says turns, tells which are acknowledged, delivers them to a slow provider."""
    store = sqlite3.connect(home / "store.db", isolation_level=None, check_same_thread=False, timeout=30)

    def take(key: str, run: str, number: int) -> None:
        time.sleep(DELIVERY)
        store.execute("INSERT OR IGNORE INTO taken (key, run, number) VALUES (?, ?, ?)", (key, run, number))

    if how.startswith("queue"):
        waiting: queue.Queue[int] = queue.Queue()

        def work() -> None:
            while True:
                number = waiting.get()
                take(f"{how}-{number}", how, number)

        threading.Thread(target=work, daemon=True).start()
        for number in range(TURNS):
            time.sleep(PACE)
            waiting.put(number)
            os.write(1, f"{number}\n".encode())
        time.sleep(10)
        return
    with Journal(home / "journal.db") as journal:

        def send(record: Record) -> Sent:
            if record.kind is Kind.TURN:
                take(record.key, record.session_id, int(record.payload["user"].split()[0]))
            return Sent.STORED

        deliverer = Deliverer(journal, send, providers=lambda: [PROVIDER])
        deliverer.start()
        for number in range(TURNS if how != "last" else 0):
            time.sleep(PACE)
            if journal.append([entry(how, number)]).durable:
                os.write(1, f"{number}\n".encode())
            deliverer.wake()
        deliverer.flush(60)
        deliverer.stop(5)


def killed(home: Path, kills: int) -> None:
    """``kill -9`` at random moments: a thread with a queue, as agents commonly have it, and the journal."""
    store = sqlite3.connect(home / "store.db", isolation_level=None)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("CREATE TABLE taken (place INTEGER PRIMARY KEY, key TEXT UNIQUE, run TEXT, number INTEGER)")
    rng = random.Random(3)
    for kind in ("queue", "journal"):
        acknowledged: dict[str, set[int]] = {}
        for run in range(kills):
            name = f"{kind}{run}"
            process = subprocess.Popen(
                [sys.executable, __file__, "--child", str(home), name], stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            wanted = rng.randrange(1, TURNS + 1)
            told = [process.stdout.readline() for _ in range(wanted)]
            process.kill()
            told += process.communicate()[0].splitlines()
            acknowledged[name] = {int(line) for line in told if line.strip()}
        if kind == "journal":
            subprocess.run(
                [sys.executable, __file__, "--child", str(home), "last"], check=True, capture_output=True
            )
        rows = store.execute("SELECT run, number FROM taken ORDER BY place").fetchall()
        lost = disorder = twice = 0
        for name, numbers in acknowledged.items():
            came = [number for run, number in rows if run == name]
            lost += len(numbers - set(came))
            disorder += came != sorted(came)
            twice += len(came) - len(set(came))
        total = sum(map(len, acknowledged.values()))
        label = f"kill -9, {kills} times: {'a thread and a queue' if kind == 'queue' else 'the journal'}"
        print(
            f"{label:<44}{lost:6d} of {total} acknowledged turns lost, {disorder} out of order, {twice} twice"
        )
    store.close()


class Hanging(RecordingProvider):
    """Hangs in whatever is asked of it."""

    release = threading.Event()

    def _record(self, member: str, **given: Any) -> None:
        if member in ("prefetch", "sync_turn", "on_turn_start"):
            self.release.wait(60)


def hanging(home: Path, limit: float = 0.2) -> None:
    """A provider that hangs: what a call costs beyond its limit, and what ending costs with a hundred turns left."""
    manager = MemoryManager(
        journal=Journal(home / "journal.db"),
        limits=Limits(prefetch=limit, hook=limit, shutdown=1.0),
    )
    manager.add_provider(Hanging())
    manager.initialize_all("s1")
    over = (timed(lambda: manager.prefetch_all("what of the kiln?")) - limit) * 1000
    turns = timed(lambda: [manager.sync_all(f"{n} {SAID}", SAID) for n in range(100)])
    seconds = timed(manager.shutdown_all)
    Hanging.release.set()
    with Journal(home / "journal.db") as journal:
        left = journal.stats().undelivered
    print(f"{'a recall that hangs, beyond its limit':<44}{over:9.1f} ms            (target: at most 50 ms)")
    print(
        f"{'ending behind a provider that hangs':<44}{seconds:9.2f} s, limit 1 s; "
        f"of 100 turns (said in {turns:.2f} s) {left} wait in the journal"
    )


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--child", nargs=2, metavar=("HOME", "HOW"))
    options = parser.parse_args()
    if options.child:
        child(Path(options.child[0]), options.child[1])
        return
    for measure in (cost_of_one, threads_together, backlog, outage, hanging):
        with folder() as home:
            measure(home)
    with folder() as home:
        killed(home, options.kills)


if __name__ == "__main__":
    main()
