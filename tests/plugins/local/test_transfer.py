"""Export and import: the same set on the other side, once, however often it is taken in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local import transfer
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.store import SqliteStore

Open = Callable[..., LocalMemoryProvider]


@pytest.fixture
def full(open_local: Open) -> LocalMemoryProvider:
    """A provider with turns of two people, equal lines, a note, and facts with a history."""
    provider = open_local("s1", user_name="Ann")
    for _ in range(2):
        provider.sync_turn("the same line", "the same answer", turn_time=5.0)
    provider.sync_turn("", "only an answer", turn_time=6.0)
    provider.sync_turn("字 🚀 \u2028 line", "", session_id="s2", turn_author="Bo", turn_time=7.5)
    open_local("t", platform="telegram", user_id="u1").sync_turn("theirs", "ok", turn_time=8.0)
    provider.on_memory_write("add", "user", "likes tea")
    fact = json.loads(
        provider.handle_tool_call("local_remember", {"text": "Lives in Lisbon", "pinned": True})
    )
    provider.handle_tool_call("local_update", {"id": fact["remembered"]["id"], "text": "Lives in Porto"})
    provider.handle_tool_call("local_remember", {"text": "On holiday", "expires": "2100-01-01"})
    provider.prefetch("where is the holiday?")
    provider.memory.settle()
    return provider


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store elsewhere."""
    store = SqliteStore(tmp_path / "other" / "memory.db")
    yield store
    store.close()


def lines(provider: LocalMemoryProvider) -> list[str]:
    """What is exported."""
    return [json.dumps(record, ensure_ascii=False) for record in provider.export_records()]


def essence(records: Any) -> list[str]:
    """Records without ids, and with the text of a successor in its place."""
    records = list(records)
    texts = {record["id"]: record["text"] for record in records}
    shown = []
    for record in records:
        kept = {key: value for key, value in record.items() if key != "id"}
        if "successor" in kept:
            kept["successor"] = texts[kept["successor"]]
        shown.append(json.dumps(kept, sort_keys=True))
    return sorted(shown)


def test_the_round_trip(full: LocalMemoryProvider, other: SqliteStore) -> None:
    """Text, time, author, session, scope, notes, and of facts their history, uses and expiry."""
    taken = transfer.take_in(other, lines(full))
    assert (taken.messages, taken.facts, taken.known, taken.malformed) == (9, 3, 0, [])
    assert essence(transfer.records(other, None)) == essence(full.export_records())
    totals = other.totals()
    assert (totals.turns, totals.notes, totals.facts, totals.former_facts, totals.pinned) == (5, 1, 2, 1, 1)


def test_a_second_time_adds_nothing(full: LocalMemoryProvider, other: SqliteStore) -> None:
    """Neither elsewhere nor where it came from."""
    given = lines(full)
    transfer.take_in(other, given)
    before = essence(transfer.records(other, None))
    again = transfer.take_in(other, given)
    assert (again.messages, again.facts, again.known) == (0, 0, 12)
    assert essence(transfer.records(other, None)) == before
    own = transfer.take_in(full.memory.store, given)
    assert (own.messages, own.facts) == (0, 0)


def test_a_part_that_is_there_is_not_doubled(full: LocalMemoryProvider, other: SqliteStore) -> None:
    """Half of the lines first, all of them then: the same set."""
    given = lines(full)
    transfer.take_in(other, given[::2])
    transfer.take_in(other, given)
    assert len(essence(transfer.records(other, None))) == len(given)


def test_a_correction_made_here_is_not_undone(full: LocalMemoryProvider) -> None:
    """What was corrected since the export stays corrected."""
    given = lines(full)
    (fact,) = full.memory.store.facts(["owner"], pinned=True)
    full.handle_tool_call("local_update", {"id": fact.id, "text": "Lives in Braga"})
    transfer.take_in(full.memory.store, given)
    found = [record["text"] for record in full.search_records("where is lives") or []]
    assert "Lives in Braga" in found
    assert "Lives in Porto" not in found


GOOD = {"role": "user", "text": "fine", "time": 5.0, "session_id": "s"}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "Expecting"),
        ("[1, 2]", "object"),
        ("null", "object"),
        (json.dumps(GOOD | {"role": "boss"}), "role"),
        (json.dumps(GOOD | {"text": ""}), "text"),
        (json.dumps(GOOD | {"text": 5}), "text"),
        (json.dumps(GOOD | {"time": "noon"}), "time"),
        (json.dumps({"role": "user", "text": "x"}), "time"),
        (json.dumps(GOOD | {"time": True}), "time"),
        ('{"role": "user", "text": "x", "time": NaN}', "time"),
        (json.dumps(GOOD | {"session_id": 7}), "session_id"),
        (json.dumps(GOOD | {"role": "note"}), "target"),
        (json.dumps(GOOD | {"role": "note", "target": "elsewhere"}), "target"),
        (json.dumps(GOOD | {"role": "fact", "uses": -1}), "uses"),
        (json.dumps(GOOD | {"role": "fact", "successor": "x"}), "successor"),
        ("[" * 100_000, ""),
        (b"\xff\xfe", ""),
    ],
)
def test_a_broken_line_is_named_and_the_rest_is_taken(
    other: SqliteStore, line: str | bytes, what: str
) -> None:
    """Counted, with its number and what is wrong with it; the lines around it are stored."""
    after = json.dumps(GOOD | {"text": "fine too"})
    taken = transfer.take_in(other, [json.dumps(GOOD), "\n", line, after])
    assert [number for number, _ in taken.malformed] == [3]
    assert what in taken.malformed[0][1]
    assert [record.text for record in other.listing(None)] == ["fine", "fine too"]


def test_lines_of_others_are_counted_and_left(other: SqliteStore) -> None:
    """What ``hermes memory export`` writes can be taken in: other providers' lines stay out."""
    given = [{"provider": "builtin", "text": "x"}, {"provider": "local", **GOOD}, {"provider": "elsewhere"}]
    taken = transfer.take_in(other, map(json.dumps, given))
    assert (taken.messages, taken.foreign, taken.malformed) == (1, 2, [])


def test_text_that_no_file_can_hold(other: SqliteStore) -> None:
    """Half of a character is replaced, as it is for a turn."""
    transfer.take_in(other, ['{"role": "user", "text": "a \\ud800 b", "time": 1}'])
    assert [record.text for record in other.listing(None)] == ["a \ufffd b"]


def test_many_lines_go_in_batches(other: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is never torn at the edge of a batch, and equal lines are counted over all of them."""
    monkeypatch.setattr(transfer, "BATCH", 3)
    given = []
    for number in range(10):
        turn = {"session_id": f"s{number % 2}", "time": float(number // 4)}
        given += [
            {"role": "user", "text": "question", **turn},
            {"role": "assistant", "text": "answer", **turn},
        ]
    for _ in range(2):
        transfer.take_in(other, map(json.dumps, given))
    assert other.totals().turns == 10
    assert other.totals().messages == 20
