"""What is let go by itself: the oldest turns, bit by bit, off the way of a turn; facts and notes stay."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ConfigError
from hermes.plugins.memory.local import memory, retention
from hermes.plugins.memory.local.options import options_of
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.records import OWNER, Limits, Turn
from hermes.plugins.memory.local.store import SqliteStore

DAY = 86_400.0
NOW = 1_800_000_000.0


def opened(home: Path, *, now: float = NOW, **kept: Any) -> LocalMemoryProvider:
    """A provider whose settings say *kept* of retention."""
    provider = LocalMemoryProvider(config=lambda: {"local": {"retention": kept}}, clock=lambda: now)
    provider.initialize("now", hermes_home=str(home), platform="cli")
    return provider


def texts(provider: LocalMemoryProvider) -> list[str]:
    """What is stored of turns, oldest first."""
    records = [record for record in provider.export_records() if record["role"] in ("user", "assistant")]
    return [record["text"] for record in sorted(records, key=lambda record: record["time"])]


def fill(provider: LocalMemoryProvider, count: int, *, sessions: int = 4) -> None:
    """Turns one hour apart, the last one now, spread over sessions that all go on."""
    provider.sync_turns(
        {
            "user_content": f"question {i} about zebras",
            "assistant_content": f"answer {i} about zebras",
            "session_id": f"s{i % sessions}",
            "turn_time": NOW - (count - 1 - i) * 3600,
        }
        for i in range(count)
    )


def settle(provider: LocalMemoryProvider) -> None:
    """Store turns until nothing more is let go."""
    for _ in range(40):
        provider.memory.settle()


def test_nothing_is_let_go_unasked(home: Path) -> None:
    """Without settings everything stays, however old."""
    provider = opened(home, now=NOW + 10_000 * DAY)
    fill(provider, 60)
    settle(provider)
    assert len(texts(provider)) == 120
    assert "retention" not in provider.get_status_config({})
    provider.shutdown()


def test_turns_grow_too_old(home: Path) -> None:
    """Those before the limit go whole, in sessions that go on as well."""
    provider = opened(home, max_age="1d")
    fill(provider, 60)
    settle(provider)
    assert texts(provider)[:2] == ["question 35 about zebras", "answer 35 about zebras"]
    assert len(texts(provider)) == 50
    shown = provider.get_status_config({})
    assert shown["retention"] == "at most 1 days; facts stay"
    assert shown["turns"] == 25
    assert shown["oldest"] == NOW - DAY
    provider.shutdown()


def test_turns_grow_too_many(home: Path) -> None:
    """The oldest go first, whatever session they are in, and the newest of all stay."""
    provider = opened(home, max_turns=7)
    fill(provider, 60)
    settle(provider)
    assert texts(provider) == [
        f"{what} {i} about zebras" for i in range(53, 60) for what in ("question", "answer")
    ]
    assert provider.search_records("question 12 zebras") == provider.search_records("question 12 zebras")
    assert not any("question 12 " in r["text"] for r in provider.search_records("question 12") or [])
    provider.shutdown()


def test_the_file_grows_too_large(home: Path) -> None:
    """Space that is in use comes down to the limit, and no further than it has to."""
    provider = opened(home)
    provider.sync_turns(
        {"user_content": f"word{i} " + "much text " * 200, "session_id": f"s{i}", "turn_time": NOW - 5000 + i}
        for i in range(600)
    )
    provider.shutdown()
    provider = opened(home, max_bytes=1_000_000)
    settle(provider)
    store = SqliteStore(home / "local" / "memory.db")
    with store._connections.read() as db:
        assert db is not None
        assert 700_000 < retention.size(db) <= 1_000_000
    assert texts(provider)[-1].startswith("word599 ")
    assert 50 < len(texts(provider)) < 400
    store.close()
    provider.shutdown()


def test_facts_and_notes_stay(home: Path) -> None:
    """However old and many, pinned or not."""
    provider = opened(home, now=NOW - 400 * DAY)
    provider.handle_tool_call("local_remember", {"text": "Ann lives in Lisbon", "pinned": True})
    provider.handle_tool_call("local_remember", {"text": "The cat is called Minka"})
    provider.on_memory_write("add", "user", "likes tea")
    provider.sync_turn("old words", "", turn_time=NOW - 400 * DAY)
    provider.shutdown()
    provider = opened(home, max_age="30d", max_turns=1, max_bytes=1)
    settle(provider)
    assert sorted(record["text"] for record in provider.export_records()) == [
        "Ann lives in Lisbon",
        "The cat is called Minka",
        "likes tea",
    ]
    provider.shutdown()


def test_it_is_done_bit_by_bit(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write lets go a bounded number, and the next one goes on until the rest is gone."""
    monkeypatch.setattr(memory, "UPKEEP_MOST", 10)
    provider = opened(home)
    fill(provider, 60)
    provider.shutdown()
    provider = opened(home, max_turns=5)
    left = []
    for _ in range(20):
        provider.sync_turn("one more", "")
        left.append(provider.get_status_config({})["turns"])
    assert left[0] == 61 - 5
    assert all(before - after <= 10 for before, after in itertools.pairwise(left))
    assert min(left) == 5
    provider.shutdown()


def test_it_happens_after_a_write_and_not_at_a_recall(home: Path) -> None:
    """Recall lets nothing go; the first write does."""
    provider = opened(home)
    fill(provider, 30)
    provider.shutdown()
    provider = opened(home, max_turns=3)
    provider.prefetch("question 1 about zebras")
    provider.search_records("zebras")
    assert provider.get_status_config({})["turns"] == 30
    provider.sync_turn("one more", "")
    assert provider.get_status_config({})["turns"] == 3
    provider.shutdown()


def test_an_upkeep_that_fails_is_no_failed_turn(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The turn was stored: what could not be let go is tried again with the next."""
    from hermes.errors import StoreUnavailable

    provider = opened(home)
    fill(provider, 5)
    provider.shutdown()
    provider = opened(home, max_turns=3)
    store = provider.memory.store
    real = store.upkeep

    def busy(*args: Any, **kwargs: Any) -> int:
        raise StoreUnavailable(home, "busy")

    monkeypatch.setattr(store, "upkeep", busy)
    provider.sync_turn("stored all the same", "")
    assert "put off" in caplog.text
    assert texts(provider)[-1] == "stored all the same"
    monkeypatch.setattr(store, "upkeep", real)
    provider.memory.settle()
    assert len(texts(provider)) == 5  # two turns with answers, one without
    provider.shutdown()


def test_what_was_let_go_leaves_the_index(home: Path) -> None:
    """Merged bit by bit, until nothing is owed; at once by ``optimize``."""
    path = home / "local" / "memory.db"
    store = SqliteStore(path)
    store.add([Turn(f"s{i}", f"xylophagerz{i} and zebra", "", float(i)) for i in range(400)], OWNER)
    limits = Limits(max_turns=10)
    while store.upkeep(NOW, {}, limits, most=50):
        pass
    for _ in range(50):
        store.upkeep(NOW, {}, limits, most=50)
    with store._connections.read() as db:
        assert db is not None
        assert retention.owed(db) == 0
    store.close()
    again = SqliteStore(path)
    again.add([Turn("new", "words", "", NOW)], OWNER)  # the next opening empties the log
    again.close()
    assert b"xylophagerz12" not in path.read_bytes()
    assert b"xylophagerz395" in path.read_bytes()


def test_optimize_does_all_at_once(home: Path) -> None:
    """Everything beyond the limits goes, its bytes too, and the file becomes smaller."""
    provider = opened(home)
    fill(provider, 3_000)
    provider.shutdown()
    provider = opened(home, max_turns=10)
    before = provider.memory.store.totals().bytes
    assert provider.memory.store.optimize(NOW, Limits(max_turns=10)) == 2 * 2990
    assert provider.memory.store.totals().bytes < before / 4
    assert provider.get_status_config({})["turns"] == 10
    assert b"question 1234 " not in (home / "local" / "memory.db").read_bytes()
    assert len(provider.search_records("zebras question") or []) == 10
    provider.shutdown()


def test_others_are_kept_apart_and_counted_together(home: Path) -> None:
    """The limits are those of the profile: the oldest turns go, whosever they are."""
    store = SqliteStore(home / "local" / "memory.db")
    for i in range(10):
        store.add([Turn(f"s{i}", f"turn {i}", "", float(i))], f"user:telegram:u{i % 2}")
    assert store.upkeep(NOW, {}, Limits(max_turns=4), most=100) == 6
    assert [record.text for record in store.listing(None)] == [f"turn {i}" for i in range(6, 10)]
    store.close()


@pytest.mark.parametrize(
    "local",
    [
        {"scope": "everybody"},
        {"scope": True},
        {"retention": {"max_age": "soon"}},
        {"retention": {"max_turns": "many"}},
        {"retention": {"max_turns": -1}},
        {"retention": {"max_bytes": True}},
        {"retention": {"max_bytes": float("nan")}},
    ],
)
def test_settings_that_make_no_sense(local: dict[str, Any]) -> None:
    """They are refused by name."""
    with pytest.raises(ConfigError, match="local"):
        options_of({"local": local})


def test_settings_are_read_as_they_are_written() -> None:
    """Spans and sizes in words, numbers, and nothing at all."""
    assert options_of({}).limits == Limits()
    assert not options_of({"local": None}).limits
    said = {"retention": {"max_age": "30d", "max_turns": 5, "max_bytes": "1GiB"}}
    assert options_of({"local": said}).limits == Limits(30 * DAY, 5, 1 << 30)


def test_the_settings_reach_the_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``local.retention`` of a profile, from a file and from ``--set``, holds for its provider."""
    from hermes.containers import Hermes

    root = tmp_path / "root"
    root.mkdir()
    (root / "config.yaml").write_text("memory: {provider: local}\nlocal: {retention: {max_age: 30d}}\n")
    hermes = Hermes(environ={"HERMES_HOME": str(root)}, settings=("local.retention.max_turns=5",))
    with hermes.open() as me:
        manager = me.memory_manager()
        manager.initialize_for_inspection("s", platform="cli")
        provider = me.memory_provider()
        assert provider is not None
        shown = json.loads(json.dumps(provider.get_status_config({})))
    assert shown["retention"] == "at most 30 days, 5 turns; facts stay"
