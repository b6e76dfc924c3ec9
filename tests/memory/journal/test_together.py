"""Several turns in one call: quicker, with the same order, the same records and the same guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.errors import PermanentError
from hermes.memory.journal import Record, Sent, State
from hermes.memory.journal.delivery import MOST_TOGETHER
from hermes.memory.lanes import CallStillRunning
from tests.memory.journal.support import Bench, Taker, dead_owner, end, switch, turn, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A journal on disk with a provider that takes many turns in one call."""
    return Bench(tmp_path / "journal.db", Taker(), together=True)


def test_many_turns_go_in_few_calls(bench: Bench) -> None:
    """Turns of several sessions that follow each other are one call, in their order, up to a bound."""
    bench.journal.append([turn(str(n), f"s{n % 3}") for n in range(250)])
    bench.settle()
    assert bench.taker.said() == [str(n) for n in range(250)]
    assert bench.taker.groups == [MOST_TOGETHER, MOST_TOGETHER, 250 - 2 * MOST_TOGETHER]
    assert bench.undelivered() == 0
    assert bench.journal.stats().health["probe"].successes == 250
    bench.journal.close()


def test_only_turns_go_together(bench: Bench) -> None:
    """Ends, switches and memory writes have their own calls, at their places."""
    said = [
        turn("0"),
        turn("1"),
        write("add", "tea"),
        turn("2"),
        end("s1"),
        switch("s1", "s2"),
        turn("3", "s2"),
    ]
    bench.journal.append([*said, turn("4", "s2")])
    bench.settle()
    assert bench.taker.kinds() == [
        "turn s1",
        "turn s1",
        "memory_write s1",
        "turn s1",
        "session_end s1",
        "session_switch s1",
        "turn s2",
        "turn s2",
    ]
    assert bench.taker.groups == [2, 2]
    bench.journal.close()


def test_a_turn_that_waits_for_a_switch_is_in_no_group(bench: Bench) -> None:
    """While the end of the old session fails, turns of the new one wait, and those of others go together."""
    bench.taker.refuse = lambda record: OSError("no") if record.kind.value == "session_end" else None
    bench.journal.append([turn("0"), end("s1"), switch("s1", "s2"), turn("1", "s2")])
    bench.settle()
    bench.journal.append([turn("2", "s3"), turn("3", "s2"), turn("4", "s3")])
    bench.settle()
    assert bench.taker.said() == ["0", "2", "4"]
    bench.taker.refuse = lambda record: None
    bench.run(60)
    assert bench.taker.said("s2") == ["1", "3"]
    bench.journal.close()


def test_the_one_that_cannot_be_taken_is_found(bench: Bench) -> None:
    """A group that fails is sent one by one: what can be taken is, each once, and the poison is set aside."""
    bench.journal.append([turn(str(n), f"s{n}") for n in range(20)])
    bench.taker.refuse = lambda record: PermanentError("no") if record.payload["user"] == "7" else None
    bench.settle()
    assert bench.taker.said() == [str(n) for n in range(20) if n != 7]
    assert [record.payload["user"] for record in bench.journal.records(state=State.DEAD)] == ["7"]
    assert bench.taker.groups == []
    bench.journal.append([turn("a"), turn("b")])
    bench.settle()
    assert bench.taker.groups == [2]  # and after that they go together again
    bench.journal.close()


def test_one_that_failed_holds_only_its_session(bench: Bench) -> None:
    """A turn that fails for a while is tried for itself; the groups of the others go on without it."""
    bench.journal.append([turn("0", "bad"), turn("1", "good")])
    bench.taker.refuse = lambda record: OSError("no") if record.session_id == "bad" else None
    bench.settle()
    bench.journal.append([turn("2", "bad"), turn("3", "good"), turn("4", "good")])
    bench.run(100)
    assert bench.taker.said() == ["1", "3", "4"]
    assert bench.taker.groups == [2]
    bench.taker.refuse = lambda record: None
    bench.run(300)
    assert bench.taker.said("bad") == ["0", "2"]
    bench.journal.close()


def test_a_backend_that_is_down_is_tried_with_one(bench: Bench) -> None:
    """While the circuit is open no groups are sent; when it is back, they are."""
    bench.taker.refuse = lambda record: ConnectionError("down")
    bench.journal.append([turn(str(n)) for n in range(50)])
    bench.run(3 * 3600, at_least=1)
    assert bench.journal.stats().health["probe"].circuit != "closed"
    tried = bench.taker.calls
    assert tried < 100
    bench.taker.refuse = lambda record: None
    bench.run(600)
    assert bench.taker.said() == [str(n) for n in range(50)]
    assert bench.taker.calls - tried <= 5
    bench.journal.close()


def test_a_call_that_hangs_costs_no_order(bench: Bench) -> None:
    """Where the call of a group has not returned, nothing is sent, and nothing counts as failed."""
    bench.taker.refuse = lambda record: CallStillRunning("sync_turns", 0.0)
    bench.journal.append([turn(str(n)) for n in range(5)])
    bench.run(30)
    assert all(record.attempts == 0 for record in bench.journal.records())
    bench.taker.refuse = lambda record: None
    bench.run(5)
    assert bench.taker.said() == [str(n) for n in range(5)]
    bench.journal.close()


def test_long_turns_make_small_groups(bench: Bench) -> None:
    """What goes in one call is bounded in characters too, and a turn beyond the bound goes alone."""
    bench.journal.append([turn(f"{n} {'x' * 200_000}") for n in range(10)])
    bench.journal.append([turn("y" * 3_000_000), turn("z")])
    bench.settle()
    assert len(bench.taker.said()) == 12
    assert bench.taker.groups
    assert max(bench.taker.groups) < 6
    bench.journal.close()


def test_what_an_accepting_provider_takes_together_is_handed_over(tmp_path: Path) -> None:
    """Each of a group is kept as handed over, to be offered again."""
    bench = Bench(tmp_path / "journal.db", Taker(Sent.ACCEPTED), together=True)
    bench.journal.append([turn(str(n)) for n in range(5)])
    bench.settle()
    assert bench.taker.groups == [5]
    assert bench.journal.stats().handed_over == 5
    assert bench.journal.redeliver() == 5
    bench.journal.close()


def test_a_crash_after_a_group_sends_it_again_with_its_keys(tmp_path: Path) -> None:
    """A process that dies between the provider's write and our note of it: the same keys come again."""

    class Dying(Taker):
        def many(self, records: Sequence[Record]) -> Sent:
            super().many(records)
            raise KeyboardInterrupt

    first = Bench(tmp_path / "journal.db", Dying(), owner=dead_owner(), together=True)
    first.journal.append([turn(str(n)) for n in range(5)])
    first.deliverer.step()
    first.journal.store.close()
    second = Bench(tmp_path / "journal.db", Taker(), first.clock, together=True)
    second.settle()
    assert [record.key for record in second.taker.got if record.kind == "turn"] == [
        record.key for record in first.taker.got
    ]
    second.journal.close()


def test_records_that_are_only_in_memory_go_one_by_one() -> None:
    """What lies in memory may lie behind something on the disk: it is sent singly, in order."""
    bench = Bench(None, Taker(), together=True)
    bench.journal.append([turn(str(n)) for n in range(4)])
    bench.settle()
    assert bench.taker.said() == ["0", "1", "2", "3"]
    assert bench.taker.groups == []
    bench.journal.close()
