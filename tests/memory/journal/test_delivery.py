"""Delivery: in order per session, again and again, around what is poisoned, and never in a hurry."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import PermanentError
from hermes.memory.journal import Entry, Journal, Kind, Record, Sent, State
from hermes.memory.lanes import CallStillRunning
from tests.memory.journal.support import PROVIDER, Bench, Clock, Taker, end, switch, turn

DAY = 86400.0


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    """A journal on disk with a provider that takes everything."""
    one = Bench(tmp_path / "journal.db", Taker())
    yield one
    one.journal.close()


def down(_record: Record) -> BaseException:
    """What a backend that is down makes a provider raise."""
    return ConnectionError("backend is down")


def refusing(*texts: str) -> Any:
    """A provider that takes no turn with one of *texts*."""
    return lambda record: ValueError("no") if record.payload.get("user") in texts else None


def test_everything_goes_in_the_order_in_which_it_was_said(bench: Bench) -> None:
    """Turns of two sessions reach a healthy provider in one order, and leave the journal."""
    bench.journal.append([turn(str(n), f"s{n % 2}") for n in range(10)])
    bench.settle()
    assert bench.taker.said() == [str(n) for n in range(10)]
    assert bench.undelivered() == 0
    assert bench.journal.records() == []


def test_a_newer_one_never_passes_an_older_one_of_its_session(bench: Bench) -> None:
    """While one session fails, its later turns wait and the other session goes on."""
    bench.journal.append([turn("a0", "a"), turn("b0", "b"), turn("a1", "a"), turn("b1", "b")])
    bench.taker.refuse = refusing("a0")
    bench.run(5)
    assert bench.taker.said() == ["b0", "b1"]
    bench.taker.refuse = lambda record: None
    bench.run(60)
    assert bench.taker.said("a") == ["a0", "a1"]


def test_waits_grow_and_have_a_bound(bench: Bench) -> None:
    """A provider that is down is tried less and less often, but at least every five minutes."""
    moments: list[float] = []

    def refuse(record: Record) -> BaseException:
        moments.append(bench.clock.steady)
        return down(record)

    bench.taker.refuse = refuse
    bench.journal.append([turn("0")])
    bench.run(3600)
    waits = [later - sooner for sooner, later in pairwise(moments)]
    assert waits[0] < 1.6
    assert all(wait <= 301 for wait in waits)
    assert max(waits) > 140
    assert 10 < len(moments) < 40
    (record,) = bench.journal.records()
    assert record.attempts == len(moments)
    assert record.error == "ConnectionError: backend is down"
    assert record.next_try > bench.clock.wall - 1


def test_three_days_of_outage_lose_nothing(bench: Bench) -> None:
    """Turns said all along three days without a backend arrive when it is back, all of them, in order."""
    bench.taker.refuse = down
    total = 0
    for _ in range(3 * 24):
        bench.journal.append([turn(str(total + n), f"s{n % 3}") for n in range(6)])
        total += 6
        bench.run(3600, at_least=30.0)
    assert bench.taker.got == []
    assert bench.taker.calls < 3000, "a backend that is down is not hammered"
    stats = bench.journal.stats()
    assert (stats.undelivered, stats.dead) == (total, 0)
    assert stats.health[PROVIDER].circuit == "open"
    assert stats.health[PROVIDER].last_error == "ConnectionError: backend is down"
    bench.taker.refuse = lambda record: None
    bench.run(400)
    for session in range(3):
        assert bench.taker.said(f"s{session}") == [str(n) for n in range(total) if n % 6 % 3 == session]
    assert bench.undelivered() == 0
    assert bench.journal.stats().health[PROVIDER].circuit == "closed"


def test_an_open_circuit_tries_one_record_at_a_time(bench: Bench) -> None:
    """After five failures a hundred waiting sessions cost one call per try, not a hundred."""
    bench.taker.refuse = down
    bench.journal.append([turn("x", f"s{n}") for n in range(100)])
    bench.run(10)
    assert bench.taker.calls <= 8
    health = bench.journal.stats().health[PROVIDER]
    assert health.circuit == "open"
    assert health.retry_at is not None
    before = bench.taker.calls
    bench.run(1000)
    assert 3 <= bench.taker.calls - before <= 20


def test_a_provider_that_is_back_makes_nobody_wait(bench: Bench) -> None:
    """The first success after an outage lets every session go at once, whatever it had still to wait."""
    bench.taker.refuse = down
    bench.journal.append([turn("x", f"s{n}") for n in range(50)])
    bench.run(3000)
    bench.taker.refuse = lambda record: None
    bench.run(301, until=lambda: bool(bench.taker.got))
    bench.settle()
    assert len(bench.taker.got) == 50


def test_a_permanent_error_sets_a_record_aside_at_once(bench: Bench) -> None:
    """The provider says that trying again cannot help: the session goes on and the gap is shown."""
    bench.journal.append([turn("a"), turn("poison"), turn("b")])
    bench.taker.refuse = lambda r: PermanentError("too long") if r.payload["user"] == "poison" else None
    bench.settle()
    assert bench.taker.said() == ["a", "b"]
    (dead,) = bench.journal.records(state=State.DEAD)
    assert (dead.payload["user"], dead.error) == ("poison", "PermanentError: too long")
    assert bench.journal.stats().dead == 1


def test_a_poisoned_record_is_set_aside_when_others_went_through(bench: Bench) -> None:
    """One that failed twenty times while the provider took another one no longer holds its session."""
    bench.journal.append([turn("poison", "a"), turn("after", "a")])
    bench.taker.refuse = refusing("poison")
    bench.run(60)
    bench.journal.append([turn("other", "b")])
    bench.run(600)
    assert bench.taker.said() == ["other"]
    assert bench.journal.records(state=State.DEAD) == []
    bench.run(3 * 3600)
    assert bench.taker.said() == ["other", "after"]
    (dead,) = bench.journal.records(state=State.DEAD)
    assert (dead.payload["user"], dead.attempts) == ("poison", 20)


def test_without_another_success_nothing_is_poisoned(bench: Bench) -> None:
    """A provider that takes nothing at all may be down for days: no record is blamed."""
    bench.journal.append([turn("before")])
    bench.settle()
    bench.journal.append([turn("a"), turn("b")])
    bench.taker.refuse = down
    bench.run(10 * DAY, at_least=300)
    assert bench.journal.records(state=State.DEAD) == []
    assert bench.undelivered() == 2


def test_what_is_too_old_is_set_aside_and_can_be_retried(tmp_path: Path) -> None:
    """A provider that takes nothing for a month: what is older than that is set aside, later turns are not."""
    bench = Bench(tmp_path / "journal.db", Taker(), max_age=30 * DAY)
    bench.taker.refuse = down
    bench.journal.append([turn(str(n), at=bench.clock.wall) for n in range(5)])
    bench.run(29 * DAY, at_least=3600)
    assert bench.journal.stats().dead == 0
    bench.journal.append([turn("young", at=bench.clock.wall)])
    bench.run(2 * DAY, at_least=600)
    stats = bench.journal.stats()
    assert (stats.dead, stats.undelivered) == (5, 1)
    bench.taker.refuse = lambda record: None
    bench.run(600)
    assert bench.taker.said() == ["young"]
    assert bench.journal.retry() == 5
    bench.run(600)
    assert bench.taker.said() == ["young", "0", "1", "2", "3", "4"]
    bench.journal.close()


def test_old_turns_that_a_closed_laptop_kept_are_tried_first(tmp_path: Path) -> None:
    """After forty days without a process a healthy provider is given everything."""
    bench = Bench(tmp_path / "journal.db", Taker(), max_age=30 * DAY)
    bench.journal.append([turn("0", at=bench.clock.wall)])
    bench.clock.pass_(40 * DAY)
    bench.settle()
    assert bench.taker.said() == ["0"]
    bench.journal.close()


def test_what_a_retired_provider_is_owed_is_set_aside_in_time(tmp_path: Path) -> None:
    """Nobody tries what is owed to a provider that is used no more: its age alone sets it aside, not before."""
    bench = Bench(tmp_path / "journal.db", Taker(), max_age=30 * DAY)
    bench.journal.append([turn("old", provider="retired"), turn("new")])
    bench.clock.pass_(29 * DAY)
    bench.settle()
    assert bench.journal.stats().dead == 0
    bench.run(2 * DAY, at_least=600)
    (letter,) = bench.journal.records(state=State.DEAD)
    assert (letter.provider, letter.attempts) == ("retired", 0)
    assert letter.error == "older than journal.max_age (30 days)"
    bench.journal.retry()
    bench.run(2 * DAY, at_least=600)
    assert bench.journal.stats().dead == 0  # it has another thirty days
    bench.journal.close()


def test_age_counts_also_where_nothing_can_be_tried(tmp_path: Path) -> None:
    """A provider that never gets ready is owed nothing for ever, but a slow start of it costs nothing."""
    bench = Bench(tmp_path / "journal.db", Taker(), max_age=30 * DAY)
    bench.active = []
    bench.journal.append([turn("0")])
    bench.clock.pass_(40 * DAY)
    bench.settle()
    assert bench.journal.stats().dead == 0
    bench.run(2 * 3600, at_least=60)
    assert bench.journal.stats().dead == 1
    bench.journal.close()


def test_turns_said_long_ago_are_not_old(tmp_path: Path) -> None:
    """Conversations of years ago that are taken in today count from today, whatever fails meanwhile."""
    bench = Bench(tmp_path / "journal.db", Taker(), max_age=30 * DAY)
    bench.taker.refuse = down
    bench.journal.append([turn(str(n), f"s{n}", at=1.0) for n in range(10)], open_sessions=False, ledger=True)
    bench.run(29 * DAY, at_least=600)
    assert bench.journal.stats().dead == 0
    bench.taker.refuse = lambda record: None
    bench.run(3600)
    assert len(bench.taker.said()) == 10
    bench.journal.close()


def test_looking_sets_nothing_aside(tmp_path: Path) -> None:
    """Only a process that delivers judges age: status and the commands of the person do not."""
    clock = Clock()
    with Journal(tmp_path / "journal.db", max_age=DAY, clock=clock.time) as journal:
        journal.append([turn("0", provider="retired")])
        clock.pass_(2 * DAY)
        assert journal.stats().dead == 0
        assert journal.retry() == 0
        assert journal.stats().undelivered == 1


def test_dead_letters_can_be_retried_and_dropped(bench: Bench) -> None:
    """They stay until the person decides: some are tried again, some are dropped, by their numbers."""
    bench.taker.refuse = lambda record: PermanentError("no")
    bench.journal.append([turn(str(n)) for n in range(3)])
    bench.settle()
    numbers = [record.seq for record in bench.journal.records(state=State.DEAD)]
    assert len(numbers) == 3
    bench.taker.refuse = lambda record: None
    assert bench.journal.retry([numbers[1]]) == 1
    bench.run(10)
    assert bench.taker.said() == ["1"]
    assert bench.journal.drop([numbers[0], 999]) == 1
    assert [record.seq for record in bench.journal.records()] == [numbers[2]]
    assert bench.journal.retry([numbers[0]]) == 0


def test_accepted_records_are_kept_until_confirmed_and_a_week_old(tmp_path: Path) -> None:
    """What was only accepted stays; a clean shutdown and the time to keep it let it go."""
    bench = Bench(tmp_path / "journal.db", Taker(Sent.ACCEPTED), keep_handed_over=7 * DAY)
    bench.journal.append([turn("0", "a"), turn("1", "b")], open_sessions=False)
    bench.settle()
    assert bench.journal.stats().handed_over == 2
    assert bench.undelivered() == 0
    bench.run(10 * DAY, at_least=600)
    assert bench.journal.stats().handed_over == 2
    bench.journal.append([turn("2", "a")], open_sessions=False)
    bench.settle()
    bench.journal.confirm(PROVIDER, "a")
    assert bench.journal.stats().handed_over == 1
    bench.run(2 * 3600, at_least=600)
    assert [r.payload["user"] for r in bench.journal.records()] == ["1", "2"], "the old confirmed one went"
    bench.run(8 * DAY, at_least=600)
    assert [r.payload["user"] for r in bench.journal.records()] == ["1"]
    bench.journal.close()


def test_redeliver_offers_what_nobody_confirmed(tmp_path: Path) -> None:
    """After a crash the person has everything unconfirmed handed over once more, with the same keys."""
    bench = Bench(tmp_path / "journal.db", Taker(Sent.ACCEPTED))
    bench.journal.append([turn("0"), turn("1")])
    bench.settle()
    first = [record.key for record in bench.taker.got]
    assert bench.journal.redeliver() == 2
    assert bench.undelivered() == 2
    bench.run(10)
    assert [record.key for record in bench.taker.got] == first + first
    bench.journal.close()


def test_records_of_another_provider_wait_for_it(bench: Bench) -> None:
    """A switch of provider keeps what is owed to the old one, counted apart, until that one is back."""
    bench.journal.append([turn("old", provider="old"), turn("new")])
    bench.run(30)
    assert bench.taker.said() == ["new"]
    assert bench.journal.stats().undelivered_by_provider == {"old": 1}
    bench.active = ["old"]
    bench.run(30)
    assert bench.taker.said() == ["new", "old"]


def test_nothing_is_sent_while_no_provider_can_take_it(bench: Bench) -> None:
    """Before a provider is initialised its records wait without an attempt."""
    bench.active = []
    bench.journal.append([turn("0")])
    bench.run(100)
    assert bench.taker.calls == 0
    bench.active = [PROVIDER]
    bench.run(5)
    assert bench.taker.said() == ["0"]


def test_a_call_that_still_runs_counts_as_no_attempt(bench: Bench) -> None:
    """A session's end that takes long is waited for, not called again, and nothing of it fails."""
    bench.journal.append([turn("0"), end(), turn("1", "s2")])
    bench.taker.refuse = lambda r: (
        CallStillRunning("on_session_end", 0.0) if r.kind is Kind.SESSION_END else None
    )
    bench.run(3600, at_least=1.0)
    assert bench.taker.said() == ["0"]
    (record, _) = bench.journal.records()
    assert (record.attempts, record.error) == (0, "")
    assert bench.journal.stats().health[PROVIDER].circuit == "closed"
    bench.taker.refuse = lambda record: None
    bench.deliverer.wake()
    bench.settle()
    assert bench.taker.said() == ["0", "1"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RecursionError(), MemoryError()])
def test_whatever_a_provider_raises_is_a_failure_like_any_other(bench: Bench, error: BaseException) -> None:
    """An exit or an interrupt raised by a provider ends neither the delivery nor the process."""
    raised: list[int] = []
    bench.taker.refuse = lambda record: None if raised else raised.append(1) or error  # type: ignore[func-returns-value]
    bench.journal.append([turn("0")])
    bench.run(10)
    assert bench.taker.said() == ["0"]


def test_the_end_comes_before_the_switch_and_the_switch_before_the_new(bench: Bench) -> None:
    """End of the old, switch, turns of the new: in that order also when the end fails for a while."""
    bench.journal.append([turn("old")])
    bench.journal.append([end(), switch("s1", "s2")])
    bench.journal.append([turn("new", "s2"), turn("elsewhere", "s9")])
    tries: list[int] = []
    bench.taker.refuse = lambda r: (
        down(r) if r.kind is Kind.SESSION_END and len(tries) < 3 and tries.append(1) is None else None  # type: ignore[func-returns-value]
    )
    bench.run(60)
    kinds = bench.taker.kinds()
    assert [one for one in kinds if "s9" not in one] == [
        "turn s1",
        "session_end s1",
        "session_switch s1",
        "turn s2",
    ]
    assert kinds.index("turn s9") == 1, "other sessions do not wait"


def test_an_end_that_never_goes_does_not_hold_the_new_session_for_ever(bench: Bench) -> None:
    """After twenty failures the new session goes on; that shows the end to be poisoned, and the switch follows."""
    bench.journal.append([turn("old"), end(), switch("s1", "s2"), turn("new", "s2")])
    bench.taker.refuse = lambda r: ValueError("cannot extract") if r.kind is Kind.SESSION_END else None
    bench.run(1800)
    assert bench.taker.said() == ["old"]
    bench.run(6 * 3600)
    assert bench.taker.said() == ["old", "new"]
    assert "session_switch s1" in bench.taker.kinds()
    (dead,) = bench.journal.records(state=State.DEAD)
    assert dead.kind is Kind.SESSION_END


def test_a_new_process_tries_at_once(tmp_path: Path) -> None:
    """What an earlier process failed to deliver is tried when the next one starts, not when its wait is over."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.taker.refuse = down
    bench.journal.append([turn("0")])
    bench.run(3600)
    bench.journal.close()
    later = Bench(tmp_path / "journal.db", Taker(), bench.clock)
    later.settle()
    assert later.taker.said() == ["0"]
    later.journal.close()


def test_a_hundred_thousand_waiting_records_cost_no_memory(tmp_path: Path) -> None:
    """The journal holds nothing of its backlog in memory, while appending, opening and looking for the next."""
    import tracemalloc

    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        tracemalloc.start()
        for _ in range(5):
            journal.append([turn("x", f"s{n % 50}") for n in range(200)], open_sessions=False)
        few, _ = tracemalloc.get_traced_memory()
        for _ in range(50):
            journal.append([turn("x", f"s{n % 50}") for n in range(200)], open_sessions=False)
        many, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert many - few < 200_000
    bench = Bench(path, Taker())
    bench.taker.refuse = refusing()
    tracemalloc.start()
    for _ in range(30):
        bench.deliverer.step()
        bench.taker.got.clear()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    bench.journal.close()


def test_other_kinds_are_delivered_too(bench: Bench) -> None:
    """Delegations and memory writes travel the same road."""
    payload = {"task": "t", "result": "r", "child_session_id": "c"}
    bench.journal.append([Entry(Kind.DELEGATION, PROVIDER, "s1", payload, "d", 1.0)])
    bench.settle()
    assert bench.taker.got[0].payload == payload
    assert bench.undelivered() == 0


def test_a_journal_in_memory_delivers_as_well(tmp_path: Path) -> None:
    """Without a file the same rules hold for as long as the process lives."""
    bench = Bench(None, Taker())
    bench.journal.append([turn("0"), turn("1"), end()])
    fails: list[int] = []
    bench.taker.refuse = lambda record: None if fails else fails.append(1) or down(record)  # type: ignore[func-returns-value]
    bench.run(20)
    assert bench.taker.kinds() == ["turn s1", "turn s1", "session_end s1"]
    assert len(bench.taker.got[-1].payload["messages"]) == 4
    assert bench.undelivered() == 0
    bench.journal.close()
