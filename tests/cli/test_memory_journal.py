"""``hermes memory journal``: what waits can be seen, handed over, tried again and dropped."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hermes.containers import Hermes
from hermes.errors import PermanentError
from hermes.testing import RecordingProvider
from tests.support import hermes


class Down(RecordingProvider):
    """A provider called local whose backend is down, or refuses for good."""

    error: Exception = ConnectionError("backend is down")

    def sync_turn(self, *args: Any, **kwargs: Any) -> None:
        """Fail."""
        raise self.error


def leave(home: Path, *texts: str, error: Exception = Down.error) -> None:
    """Let turns be recorded that the provider does not take."""
    provider = Down("local")
    provider.error = error
    with Hermes(environ={}, home=home).override(memory_provider=provider).open() as me:
        manager = me.memory_manager()
        manager.initialize_all("s1")
        for text in texts:
            assert manager.sync_all(text, "Noted.").durable
        manager.flush_pending(5)


def journal(home: Path, *words: str, code: int = 0) -> Any:
    """What a journal command prints with --json."""
    done = hermes("memory", "journal", *words, "--json", home=home)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_an_empty_journal(home: Path) -> None:
    """Where nothing was ever owed, every look says so and makes no file."""
    assert journal(home, "status")["exists"] is False
    assert journal(home, "list") == []
    assert hermes("memory", "journal", "show", "1", home=home).returncode == 3
    assert not home.exists()


def test_what_waits_is_seen_and_survives(home: Path) -> None:
    """A turn that a provider did not take is listed with its text and reason; status counts it and its age."""
    leave(home, "The kiln is in Hall C.")
    (record,) = [r for r in journal(home, "list") if r["kind"] == "turn"]
    assert record["state"] == "pending"
    assert "backend is down" in record["error"]
    assert "Hall C" in hermes("memory", "journal", "list", home=home).stdout
    shown = journal(home, "show", str(record["number"]))
    assert shown["payload"]["user"] == "The kiln is in Hall C."
    found = hermes("memory", "status", home=home).stdout
    assert "the oldest" in found
    assert journal(home, "status")["undelivered"] >= 1


def test_flush_hands_over_what_an_earlier_process_left(home: Path) -> None:
    """The next process that delivers takes what the last one could not, and it is recalled."""
    leave(home, "The kiln is in Hall C.")
    assert journal(home, "flush")["undelivered"] == 0
    assert "Hall C" in hermes("memory", "search", "kiln", home=home).stdout


def test_status_says_what_the_file_system_and_the_disk_did(home: Path) -> None:
    """A journal without a write-ahead log, and damaged ones that were kept, are named in both statuses."""
    leave(home, "The kiln is in Hall C.")
    with contextlib.closing(sqlite3.connect(home / "journal.db")) as con:
        con.execute("PRAGMA journal_mode = DELETE")
    kept = home / "journal.db.damaged-20260101-120000"
    kept.write_bytes(b"what is left of it")
    for words in (("memory", "journal", "status"), ("memory", "status")):
        shown = hermes(*words, home=home).stdout
        assert "rollback journal" in shown
        assert str(kept) in shown
    data = journal(home, "status")
    assert (data["mode"], data["moved_aside"]) == ("rollback", [str(kept)])


def test_looking_delivers_nothing(home: Path) -> None:
    """Status, list and show leave what waits where it is."""
    leave(home, "The kiln is in Hall C.")
    before = journal(home, "list")
    for words in (
        ["memory", "status"],
        ["memory", "list"],
        ["config", "show"],
        ["memory", "journal", "status"],
    ):
        hermes(*words, home=home)
    assert journal(home, "list") == before


def test_dead_letters_are_kept_until_the_person_decides(home: Path) -> None:
    """What a provider refused for good is set aside, can be tried again, and is dropped only when asked."""
    leave(home, "The kiln is in Hall C.", error=PermanentError("too large"))
    (dead,) = journal(home, "list", "--state", "dead")
    assert "too large" in dead["error"]
    assert "set aside" in hermes("memory", "status", home=home).stdout
    assert hermes("memory", "journal", "drop", str(dead["number"]), home=home).returncode == 2  # it asks
    assert journal(home, "retry", "--all")["retried"] == 1
    assert journal(home, "list", "--state", "dead") == []
    assert journal(home, "flush")["undelivered"] == 0


def test_dropping(home: Path) -> None:
    """A dropped record is gone, byte for byte, and dropping it again finds nothing."""
    leave(home, "The kiln is in Hall C.", error=PermanentError("too large"))
    (dead,) = journal(home, "list", "--state", "dead")
    assert journal(home, "drop", str(dead["number"]), "--yes")["dropped"] == 1
    assert hermes("memory", "journal", "drop", str(dead["number"]), "--yes", home=home).returncode == 3
    assert not any(b"Hall C" in file.read_bytes() for file in home.rglob("*") if file.is_file())


@pytest.mark.parametrize("words", [["retry"], ["redeliver"], ["retry", "1", "--all"], ["drop"]])
def test_nothing_is_meant_by_accident(home: Path, words: list[str]) -> None:
    """Which records are meant is said: by number, or all of them."""
    assert hermes("memory", "journal", *words, home=home).returncode == 2


def test_switching_provider_keeps_what_is_owed_to_the_old_one(home: Path) -> None:
    """Records for a provider that is no longer active stay, and status says for whom."""
    leave(home, "The kiln is in Hall C.")
    hermes("config", "set", "memory.provider", "", home=home)
    assert "kept for local" in hermes("memory", "status", home=home).stdout


def test_a_command_leaves_no_session_behind(home: Path) -> None:
    """A session of the next program is the first that the provider is told the end of."""
    for text in ("x is y", "y is z"):
        hermes("memory", "add", text, home=home)
    provider = RecordingProvider("local")
    with Hermes(environ={}, home=home).override(memory_provider=provider).open() as me:
        manager = me.memory_manager()
        manager.initialize_all("s1")
        manager.sync_all("The kiln is in Hall C.", "Noted.")
        manager.on_session_end([])
        assert manager.flush_pending(10)
    assert [len(end["messages"]) for end in provider.named("on_session_end")] == [2]
