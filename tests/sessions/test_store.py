"""Transcripts: written as a turn goes on, found again, deleted for good."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.errors import NotFound, StoreUnavailable, UsageError
from hermes.sessions import Sessions


@pytest.fixture
def sessions(home: Path) -> Iterator[Sessions]:
    """Transcripts of an empty profile."""
    store = Sessions(home / "sessions.db")
    yield store
    store.close()


def say(sessions: Sessions, session_id: str, user: str, answer: str = "yes", *, kept: bool = True) -> int:
    """One complete turn."""
    number = sessions.begin_turn(session_id, {"role": "user", "content": user})
    sessions.finish_turn(session_id, number, [{"role": "assistant", "content": answer}], "done")
    if kept:
        sessions.mark_kept(session_id, number)
    return number


def test_looking_creates_nothing(sessions: Sessions, home: Path) -> None:
    """Listing, searching, ending and forgetting make no file."""
    assert sessions.listing() == []
    assert sessions.search("x") == []
    assert sessions.owed() == []
    assert sessions.delete(["x"]) == sessions.forget("x") == 0
    sessions.end("x", "exit")
    with pytest.raises(NotFound):
        sessions.get("x")
    assert not home.exists()


def test_the_file_is_private_from_birth(sessions: Sessions, home: Path) -> None:
    """Nobody else can read what was said."""
    say(sessions, "s", "hello")
    for path in home.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_turn_is_there_from_its_first_word_on(sessions: Sessions) -> None:
    """What the person said is kept before there is an answer, and counts when there is one."""
    number = sessions.begin_turn("s", {"role": "user", "content": "are you there?"})
    assert sessions.said("s") == []
    assert [row.state for row in sessions.transcript("s", every=True)] == ["open"]
    sessions.finish_turn("s", number, [{"role": "assistant", "content": "I am"}], "done")
    assert [message["content"] for message in sessions.said("s")] == ["are you there?", "I am"]
    assert sessions.owed() == [("s", 1)]
    sessions.mark_kept("s", number)
    assert sessions.owed() == []
    assert sessions.get("s").turns == 1


def test_a_session_is_named_by_the_beginning_of_its_id(sessions: Sessions) -> None:
    """An id, or enough of it; too little of it, or none, is an error."""
    for name in ("20260101-a", "20260102-b", "20260102"):
        say(sessions, name, f"in {name}")
    assert sessions.get("20260101").id == "20260101-a"
    assert sessions.get("20260102").id == "20260102"
    for wrong, error in (("2026", UsageError), ("", NotFound), ("%", NotFound), ("9", NotFound)):
        with pytest.raises(error):
            sessions.get(wrong)


def test_words_are_found_in_every_language_and_taken_literally(sessions: Sessions) -> None:
    """Each word must be there; per cent and underscore are themselves."""
    say(sessions, "a", "我的猫叫小白", "好的")
    say(sessions, "b", "use snake_case at 100% please")
    say(sessions, "c", "use snakeXcase at 100 please")
    assert [row.session_id for row in sessions.search("小白")] == ["a"]
    assert [row.session_id for row in sessions.search("snake_case")] == ["b"]
    assert [row.session_id for row in sessions.search("100% SNAKE")] == ["b"]
    assert len(sessions.search("please use")) == 2
    assert sessions.search("") == []


def test_undo_and_branch(sessions: Sessions) -> None:
    """A turn taken back no longer counts, and a branch has only what counts."""
    say(sessions, "s", "one")
    say(sessions, "s", "two")
    assert [message["content"] for message in sessions.undo("s")] == ["two", "yes"]
    assert len(sessions.said("s")) == 2
    say(sessions, "s", "three")
    sessions.branch("s", "t")
    assert [m["content"] for m in sessions.said("t")] == ["one", "yes", "three", "yes"]
    assert (sessions.get("t").parent, sessions.owed()) == ("s", [])
    sessions.undo("s")
    sessions.undo("s")
    assert sessions.undo("s") == []
    with pytest.raises(NotFound):
        sessions.branch("nosuch", "x")


def test_a_deleted_session_leaves_no_byte(sessions: Sessions, home: Path) -> None:
    """Deleted means gone: no file below the home holds the text."""
    say(sessions, "s", "the secret word is marzipan")
    say(sessions, "t", "something else")
    assert sessions.delete(["s", "nosuch"]) == 1
    assert not any(b"marzipan" in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert [session.id for session in sessions.listing()] == ["t"]


def test_a_forgotten_text_leaves_no_byte(sessions: Sessions, home: Path) -> None:
    """The turns that hold it go, with titles and summaries that do; the rest of the session stays."""
    say(sessions, "s", 'call me "Max" \\ marzipan')
    say(sessions, "s", "something else")
    sessions.keep_context("s", [{"role": "user", "content": 'a summary with call me "Max" \\ marzipan'}], 1)
    assert sessions.forget('call me "Max" \\ marzipan') == 1
    assert not any(b"marzipan" in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert [m["content"] for m in sessions.said("s")] == ["something else", "yes"]
    assert sessions.forget("  ") == 0


def test_eight_threads_and_two_stores_write_at_once(sessions: Sessions, home: Path) -> None:
    """Every turn is there, numbered without a gap."""
    other = Sessions(home / "sessions.db")

    def talk(store: Sessions) -> None:
        for n in range(10):
            say(store, "s", f"turn {n}")

    threads = [threading.Thread(target=talk, args=(store,)) for store in (sessions, other) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    rows = sessions.transcript("s")
    assert [row.turn for row in rows[::2]] == list(range(1, 81))


def test_what_is_no_database_is_an_error_and_stays_as_it_is(home: Path) -> None:
    """A damaged file is named, and not written over."""
    home.mkdir()
    path = home / "sessions.db"
    path.write_bytes(b"not a database, certainly not " * 100)
    sessions = Sessions(path)
    with pytest.raises(StoreUnavailable, match=r"sessions\.db"):
        say(sessions, "s", "hello")
    assert path.read_bytes().startswith(b"not a database")


def test_a_newer_file_is_left_alone(home: Path) -> None:
    """A file of a later version is refused with a clear reason."""
    import sqlite3

    home.mkdir()
    path = home / "sessions.db"
    with sqlite3.connect(path) as con:
        con.execute("PRAGMA user_version = 99")
    con.close()
    with pytest.raises(StoreUnavailable, match="later version"):
        Sessions(path).listing()
