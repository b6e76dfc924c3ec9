"""What the journal costs, what is lost, and whom a provider that hangs holds up.

Every figure stands beside a plain one that was taken in the same run: what a disk takes to flush decides most
of them. ``--kills N`` for more than the usual ten processes that are killed, ``--quick`` for a look in half a
minute, ``--folder`` for another disk than that of temporary files.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import logging
import os
import queue
import random
import resource
import shutil
import signal
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

from hermes.errors import HermesError
from hermes.memory.journal import Deliverer, Entry, Journal, Kind, Record, Sent
from hermes.memory.journal.circuit import Backoff
from hermes.memory.journal.records import new_key
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
    return Entry(Kind.TURN, PROVIDER, session, payload, new_key(), time.time())


class Quiet(RecordingProvider):
    """Takes everything and remembers nothing."""

    def _record(self, member: str, **given: Any) -> None:
        return


@contextlib.contextmanager
def folder(where: str | None) -> Iterator[Path]:
    """A folder in *where* that is gone afterwards, also when this process is told to end."""
    path = Path(tempfile.mkdtemp(dir=where, prefix="hermes-bench-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def timed(action: Callable[[], object]) -> float:
    """Seconds that *action* takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def bare(path: Path) -> Callable[[], object]:
    """One row of the same size committed with synchronous=FULL, and nothing else."""
    con = sqlite3.connect(path, isolation_level=None)
    con.execute("PRAGMA journal_mode = WAL")
    con.execute("PRAGMA synchronous = FULL")
    con.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    text = SAID * 2

    def commit() -> None:
        con.execute("BEGIN IMMEDIATE")
        con.execute("INSERT INTO t (b) VALUES (?)", (text,))
        con.execute("COMMIT")

    return commit


def cost_of_one(home: Path, quick: bool) -> None:
    """One turn against one bare commit: in random order, each behind a flush, which the next one profits from."""
    rounds = 300 if quick else 1500
    journal = Journal(home / "journal.db")
    manager = MemoryManager(journal=Journal(home / "managed.db"))
    manager.add_provider(Quiet())
    manager.initialize_all("s1")
    ways: dict[str, Callable[[], object]] = {
        "a bare commit": bare(home / "bare.db"),
        "journal.append": lambda: journal.append([entry()]),
        "sync_all": lambda: manager.sync_all(SAID, SAID),
    }
    before = bare(home / "before.db")
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            before()
            taken[name].append(timed(ways[name]))
            if name == "sync_all":
                manager.flush_pending(5)  # else its delivery would be timed with the next commit
    unit = statistics.median(taken["a bare commit"])
    for name, values in taken.items():
        median = statistics.median(values)
        print(f"{name:<44}{median * 1e6:9.0f} us {median / unit:7.2f}x   (target for a turn: at most 1.5x)")
    manager.shutdown_all()
    journal.close()


def threads_together(home: Path, quick: bool) -> None:
    """Eight threads against one, in turns a second: what they gain is the flush that they share."""
    each, rounds = (100, 3) if quick else (300, 9)
    rates: dict[int, list[float]] = {1: [], 8: []}
    with Journal(home / "journal.db") as journal:

        def work(session: str) -> None:
            for _ in range(each):
                journal.append([entry(session)])

        def rate(threads: int) -> float:
            workers = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(threads)]
            start = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            return threads * each / (time.perf_counter() - start)

        rate(8)
        for _ in range(rounds):
            for threads, values in rates.items():
                values.append(rate(threads))
    ratio = statistics.median(eight / one for one, eight in zip(rates[1], rates[8], strict=True))
    eight, one = statistics.median(rates[8]), statistics.median(rates[1])
    print(
        f"{'eight threads against one':<44}{eight:9.0f} /s {ratio:7.2f}x   "
        f"(target: 4x; one thread: {one:.0f} /s, {1e6 / one:.0f} us a turn)"
    )


def backlog(home: Path, quick: bool) -> None:
    """A hundred thousand undelivered turns: how fast they are written, what they cost, how fast it opens."""
    number = 20_000 if quick else 100_000
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
    print(f"{f'memory grown over {number:,} undelivered turns':<44}{grown:9.1f} MB")
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


def outage(home: Path, quick: bool) -> None:
    """A backend that is down for days while a turn is said every ten minutes; then it is back."""
    days = 1 if quick else 3
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


CALLS: dict[str, tuple[str, Callable[[MemoryManager], Any]]] = {
    "initialize": ("initialize", lambda m: m.initialize_all("s1")),
    "system_prompt_block": ("hook", lambda m: m.build_system_prompt()),
    "prefetch": ("prefetch", lambda m: m.prefetch_all("what of the kiln?")),
    "queue_prefetch": ("", lambda m: m.queue_prefetch_all("what of the kiln?")),
    "recall_status": ("hook", lambda m: m.describe_recall()),
    "handle_tool_call": ("tool_call", lambda m: m.handle_tool_call("recording_echo", {})),
    "on_turn_start": ("hook", lambda m: m.on_turn_start(1, "x")),
    "on_pre_compress": ("hook", lambda m: m.on_pre_compress([])),
    "sync_turn": ("", lambda m: m.sync_all(SAID, SAID)),
    "on_memory_write": ("", lambda m: m.on_memory_write("add", "user", "x")),
    "on_delegation": ("", lambda m: m.on_delegation("task", "result")),
    "on_session_end": ("", lambda m: m.on_session_end([])),
    "on_session_switch": ("", lambda m: m.on_session_switch("s2")),
    "search_records": ("tool_call", lambda m: m.search_records("x")),
    "forget_records": ("tool_call", lambda m: m.forget_records(session_id="x")),
    "shutdown": ("shutdown", lambda m: m.shutdown_all()),
}
"""What calls each member of a provider, and which limit holds for the caller; none where it does not wait."""


class Hanging(Quiet):
    """Hangs for a minute in one member."""

    def __init__(self, member: str) -> None:
        super().__init__()
        self.release = threading.Event()
        setattr(self, member, lambda *_args, **_named: self.release.wait(60))


def hanging(home: Path, quick: bool) -> None:
    """Each member hangs in turn: what its caller waits beyond the limit, what turns then cost, what ending costs."""
    limit, end = (0.1, 0.3) if quick else (0.3, 1.0)
    limits = Limits(
        prefetch=limit, tool_call=limit, hook=limit, initialize=limit, session_end=limit, shutdown=end
    )
    print(
        f"a member that hangs for 60 s; limits {limit:g} s, {end:g} s for the end; then 100 turns with recall"
    )
    quiet = logging.Logger("quiet", logging.CRITICAL)
    for member, (limited_by, call) in CALLS.items():

        def answered(manager: MemoryManager, call: Callable[[MemoryManager], Any] = call) -> None:
            with contextlib.suppress(HermesError):  # the person's own commands say that it did not answer
                call(manager)

        path = home / f"{member}.db"
        journal = Journal(path)
        journal.append([entry()])  # the file is there, as it is on every day but the first
        provider = Hanging(member)
        manager = MemoryManager(journal=journal, limits=limits, log=quiet)
        manager.add_provider(provider)
        if member != "initialize":
            manager.initialize_all("s1")
        over = timed(lambda: answered(manager)) - (getattr(limits, limited_by) if limited_by else 0.0)  # noqa: B023

        def turns(manager: MemoryManager = manager) -> None:
            for number in range(100):
                manager.on_turn_start(number, SAID)
                manager.prefetch_all(SAID)
                manager.sync_all(f"{number} {SAID}", SAID)

        said = timed(turns)
        ended = timed(manager.shutdown_all)
        provider.release.set()
        left = journal.stats().undelivered_by_provider.get(provider.name, 0)
        journal.close()
        print(
            f"  {member:<42}{over * 1000:9.1f} ms beyond (target 50), turns {said:.2f} s, "
            f"end {ended:.2f} s, {left} wait in the journal"
        )


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--child", nargs=2, metavar=("HOME", "HOW"))
    options = parser.parse_args()
    if options.child:
        child(Path(options.child[0]), options.child[1])
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the folders are removed
    for measure in (cost_of_one, threads_together, backlog, outage, hanging):
        with folder(options.folder) as home:
            measure(home, options.quick)
    with folder(options.folder) as home:
        killed(home, options.kills or (3 if options.quick else 10))


if __name__ == "__main__":
    main()
