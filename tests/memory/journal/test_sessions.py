"""Sessions end once: told by the caller, or, when their process died, from the turns in the journal."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from hermes.memory.journal import Kind, Sent
from hermes.memory.journal.owner import Owner
from tests.memory.journal.support import PROVIDER, Bench, Clock, Taker, dead_owner, end, switch, turn, undo


def ends(taker: Taker) -> list[tuple[str, list[str]]]:
    """The ends that came: session, and what was said in it."""
    return [
        (record.session_id, [message["content"] for message in record.payload["messages"]])
        for record in taker.got
        if record.kind is Kind.SESSION_END
    ]


def said(*texts: str) -> list[str]:
    """What stands in a transcript of *texts*."""
    return [part for text in texts for part in (text, f"noted: {text}")]


def crashed(path: Path, taker: Taker | None = None, clock: Clock | None = None) -> Bench:
    """The bench of a process that will be found dead."""
    return Bench(path, taker or Taker(), clock, owner=dead_owner())


def test_a_session_whose_process_died_gets_its_end(tmp_path: Path) -> None:
    """The next process tells the provider of the end, once, with every turn: delivered before or after the crash."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a"), turn("b")])
    bench.settle()
    bench.journal.append([turn("c")])
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert later.taker.said() == ["c"]
    assert ends(later.taker) == [("s1", said("a", "b", "c"))]
    assert later.journal.records() == []
    later.journal.close()
    third = Bench(tmp_path / "journal.db", Taker())
    third.run(60)
    assert third.taker.got == []
    third.journal.close()


def test_a_session_that_was_ended_is_not_ended_again(tmp_path: Path) -> None:
    """An end that the caller told is delivered by the next process, as the caller told it."""
    bench = crashed(tmp_path / "journal.db")
    messages = [{"role": "user", "content": "the whole of it"}]
    bench.journal.append([turn("a"), end("s1", messages)])
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(120)
    assert ends(later.taker) == [("s1", ["the whole of it"])]
    later.journal.close()


def test_end_and_switch_survive_a_crash_in_between(tmp_path: Path) -> None:
    """A process that dies right after the boundary was written: the end comes, then the switch, then the new."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("old")])
    bench.journal.append([end("s1"), switch("s1", "s2")])
    bench.journal.append([turn("new", "s2")])
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert later.taker.kinds() == [
        "turn s1",
        "session_end s1",
        "session_switch s1",
        "turn s2",
        "session_end s2",
    ]
    later.journal.close()


def test_an_end_without_messages_gets_the_journalled_turns(tmp_path: Path) -> None:
    """A caller that has no transcript at hand need not lose the session."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.journal.append([turn("a")])
    bench.settle()
    bench.journal.append([turn("b"), end()])
    bench.settle()
    assert ends(bench.taker) == [("s1", said("a", "b"))]
    assert bench.journal.transcript(PROVIDER, "s1") == []
    bench.journal.close()


def test_a_session_is_left_alone_while_its_process_lives(tmp_path: Path) -> None:
    """Days of silence do not end a session of a living process; closing it does."""
    first, second = Bench(tmp_path / "journal.db", Taker()), Bench(tmp_path / "journal.db", Taker())
    first.journal.append([turn("a", "mine")])
    second.journal.append([turn("b", "other")])
    first.run(5 * 86400, at_least=3600)
    assert ends(first.taker) == []
    second.journal.close()
    first.run(60)
    assert ends(first.taker) == [("other", said("b"))]
    first.journal.close()


def test_a_resumed_session_is_taken_over(tmp_path: Path) -> None:
    """Opening the session of a dead process goes on with it; it ends once, with all its turns."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a")])
    bench.settle()
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.journal.open_session(PROVIDER, "s1")
    later.run(300)
    assert ends(later.taker) == []
    later.journal.append([turn("b"), end()])
    later.run(60)
    assert ends(later.taker) == [("s1", said("a", "b"))]
    later.journal.close()


def test_a_session_that_ended_can_begin_again(tmp_path: Path) -> None:
    """A turn after the end opens the session anew, and another end is owed."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a"), end()])
    bench.settle()
    bench.journal.append([turn("b")])
    bench.settle()
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert [session for session, _ in ends(bench.taker) + ends(later.taker)] == ["s1", "s1"]
    later.journal.close()


def test_a_turn_between_an_end_and_its_delivery_keeps_the_session_open(tmp_path: Path) -> None:
    """The end that was told is delivered, and the turn after it still gets an end of its own."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a"), end("s1"), turn("b")])
    bench.settle()
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert ends(bench.taker) == [("s1", said("a"))]
    ((session, text),) = ends(later.taker)
    assert session == "s1"
    assert text[-2:] == said("b")
    later.journal.close()


def test_a_session_lingers_after_its_process(tmp_path: Path) -> None:
    """Where every turn is a process of its own, the session ends when nothing came for long enough."""
    clock = Clock()
    for text in ("a", "b", "c"):
        bench = Bench(tmp_path / "journal.db", Taker(), clock)
        bench.journal.open_session(PROVIDER, "s1", linger=3600)
        bench.journal.append([turn(text)])
        bench.settle()
        assert ends(bench.taker) == []
        bench.journal.close()
        clock.pass_(1800)
    last = Bench(tmp_path / "journal.db", Taker(), clock)
    last.run(1500, at_least=10)
    assert ends(last.taker) == []
    last.run(3600, at_least=10)
    assert ends(last.taker) == [("s1", said("a", "b", "c"))]
    last.journal.close()


def test_a_session_that_goes_on_under_another_name_ends_once(tmp_path: Path) -> None:
    """After a compression there is one end, of the new session, with the turns of both."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a", "s1")])
    bench.settle()
    bench.journal.continue_session(PROVIDER, "s1", "s2")
    bench.journal.append([switch("s1", "s2"), turn("b", "s2")])
    bench.journal.continue_session(PROVIDER, "s2", "s3")
    bench.journal.append([turn("c", "s3")])
    bench.settle()
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert ends(later.taker) == [("s3", said("a", "b", "c"))]
    assert later.journal.transcript(PROVIDER, "s3") == []
    assert later.journal.transcript(PROVIDER, "s1") == []
    later.journal.close()


def test_no_end_is_owed_for_a_closed_session(tmp_path: Path) -> None:
    """A session that was closed, or in which nothing was said, or whose turns were read in bulk, has no end."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a", "closed")])
    bench.journal.open_session(PROVIDER, "silent")
    bench.journal.append([turn("b", "ingested")], open_sessions=False)
    bench.settle()
    bench.journal.close_session(PROVIDER, "closed")
    assert bench.journal.transcript(PROVIDER, "closed") == []
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert later.taker.got == []
    later.journal.close()


def test_sessions_of_another_provider_wait_for_it(tmp_path: Path) -> None:
    """The end of a session of a provider that is not active now is owed until it is."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("a", provider="old")])
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.run(60)
    assert later.taker.got == []
    later.active = ["old"]
    later.run(60)
    assert later.taker.kinds() == ["turn s1", "session_end s1"]
    later.journal.close()


def test_turns_kept_for_the_end_hold_only_what_was_said(tmp_path: Path) -> None:
    """Delivered turns of an open session are kept without what went with them, and are not listed."""
    bench = Bench(tmp_path / "journal.db", Taker())
    entry = turn("a")
    large = {**entry.payload, "messages": [{"role": "tool", "content": "x" * 10_000}]}
    bench.journal.append([attrs.evolve(entry, payload=large)])
    bench.settle()
    assert bench.journal.records() == []
    assert bench.journal.stats().undelivered == 0
    assert bench.journal.transcript(PROVIDER, "s1") == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "noted: a"},
    ]
    kept = bench.journal.store.read(
        lambda con: con.execute("SELECT max(length(payload)) FROM record").fetchone()
    )
    assert kept[0][0] < 100
    bench.journal.close()


def test_the_turns_of_an_accepting_provider_make_the_end_too(tmp_path: Path) -> None:
    """What was handed over and never confirmed is part of the transcript."""
    bench = crashed(tmp_path / "journal.db", Taker(Sent.ACCEPTED))
    bench.journal.append([turn("a"), turn("b")])
    bench.settle()
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker(Sent.ACCEPTED))
    later.run(60)
    assert ends(later.taker) == [("s1", said("a", "b"))]
    later.journal.close()


def test_a_poisoned_turn_is_in_the_transcript_all_the_same(tmp_path: Path) -> None:
    """The end tells everything that was said, also what the provider refused."""
    from hermes.errors import PermanentError

    bench = Bench(tmp_path / "journal.db", Taker())
    bench.taker.refuse = lambda r: PermanentError("no") if r.payload.get("user") == "a" else None
    bench.journal.append([turn("a"), turn("b"), end()])
    bench.settle()
    assert ends(bench.taker) == [("s1", said("a", "b"))]
    bench.journal.close()


@pytest.mark.parametrize("delivered_first", [True, False])
def test_an_undone_turn_is_not_in_the_transcript(tmp_path: Path, delivered_first: bool) -> None:
    """What was taken back is told to the provider as it came, and is missing in the end of a crashed session."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("one"), turn("two")])
    if delivered_first:
        bench.settle()
    bench.journal.append([undo("s1")])
    bench.journal.append([turn("three"), turn("four")])
    bench.journal.append([undo("s1")])
    bench.journal.append([turn("five")])
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", bench.taker, bench.clock)
    later.settle()
    assert bench.taker.said() == ["one", "two", "three", "four", "five"]
    assert ends(bench.taker) == [("s1", said("one", "three", "five"))]
    later.journal.close()


def test_undo_reaches_behind_a_compression(tmp_path: Path) -> None:
    """The first thing that is undone in a continued session is the last turn of the one before."""
    bench = crashed(tmp_path / "journal.db")
    bench.journal.append([turn("one"), turn("two")])
    bench.journal.continue_session(PROVIDER, "s1", "s2")
    bench.journal.append([undo("s2")])
    bench.journal.append([turn("three", "s2")])
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", bench.taker, bench.clock)
    later.settle()
    assert ends(bench.taker) == [("s2", said("one", "three"))]
    later.journal.close()


def test_a_dropped_end_lets_the_transcript_go(tmp_path: Path) -> None:
    """When the person drops an end that the provider refuses, nothing of the session stays behind."""
    from hermes.errors import PermanentError

    bench = Bench(tmp_path / "journal.db", Taker())
    bench.taker.refuse = lambda r: PermanentError("no") if r.kind is Kind.SESSION_END else None
    bench.journal.append([turn("a"), end()])
    bench.settle()
    assert bench.journal.transcript(PROVIDER, "s1")
    (dead,) = bench.journal.records()
    assert bench.journal.drop([dead.seq]) == 1
    assert bench.journal.transcript(PROVIDER, "s1") == []
    bench.journal.close()


def test_a_process_on_another_machine_is_gone_when_it_was_silent(tmp_path: Path) -> None:
    """Where nobody can look at a process, its beat decides, by the watcher's own clock."""
    far = attrs.evolve(Owner.here(), place="another machine")
    bench = Bench(tmp_path / "journal.db", Taker(), owner=far)
    bench.journal.append([turn("a")])
    bench.run(30)
    bench.journal.store.close()
    later = Bench(tmp_path / "journal.db", Taker())
    later.clock.wall += 10 * 86400  # clocks of machines differ: that proves nothing
    later.run(200)
    assert later.taker.got == []
    later.run(600)
    assert ends(later.taker) == [("s1", said("a"))]
    later.journal.close()


def test_a_pid_that_was_used_again_is_another_process(tmp_path: Path) -> None:
    """A living process with the same pid, born at another time, does not keep a session open."""
    again = attrs.evolve(Owner.here(), born="1")
    assert again.lives() is False
    assert Owner.here().lives() is True
    assert dead_owner().lives() is False
    assert attrs.evolve(Owner.here(), place="elsewhere").lives() is None
