"""Forgetting reaches the journal: no byte of the text is left, except where the provider must still be told."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from hermes.database import Database
from hermes.errors import PermanentError
from hermes.memory.journal import Journal, Sent
from tests.memory.journal.support import PROVIDER, Bench, Taker, end, turn, write

SECRET = "the kiln code is 4711"


def files_with(folder: Path, text: str) -> list[str]:
    """The files below *folder* in which *text* stands, plainly or as JSON writes it."""
    needles = {
        text.encode(),
        json.dumps(text)[1:-1].encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode(),
    }
    return [
        file.name
        for file in sorted(folder.rglob("*"))
        if file.is_file() and any(needle in file.read_bytes() for needle in needles)
    ]


@pytest.mark.parametrize(
    "text",
    [SECRET, 'she said "no"\nand left', "naïve Café 記憶", "emoji \U0001f600 end", "back\\slash\tand tab"],
)
def test_a_text_leaves_every_record_and_every_byte(tmp_path: Path, text: str) -> None:
    """Turns that wait, that were delivered, that are dead: the text is gone from all of them, the rest stays."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.journal.append([turn(f"delivered {text} .")])
    bench.settle()
    bench.taker.refuse = lambda record: PermanentError(f"refused: {text}")
    bench.journal.append([turn(f"dead {text} .", "s2")])
    bench.settle()
    bench.active = []
    bench.journal.append(
        [
            turn(f"waits {text} .", "s3"),
            turn("nothing of it", "s3"),
            end("s3", [{"role": "user", "content": text}]),
        ]
    )
    assert files_with(tmp_path, text)
    done = bench.journal.scrub(text)
    assert (done.changed, done.waiting, done.left) == (4, 0, ())
    assert files_with(tmp_path, text) == []
    dead, waits, other, ended = bench.journal.records()
    assert waits.payload["user"] == "waits [forgotten] ."
    assert other.payload["user"] == "nothing of it"
    assert text not in dead.error
    assert ended.payload["messages"][0]["content"] == "[forgotten]"
    assert bench.journal.transcript(PROVIDER, "s1")[0]["content"] == "delivered [forgotten] ."
    bench.journal.close()
    assert files_with(tmp_path, text) == []


def test_a_long_text_leaves_no_piece_of_itself(tmp_path: Path) -> None:
    """A text over many pages is looked for piece by piece."""
    text = " ".join(f"sentence {n} of a long confession" for n in range(700))
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("before"), turn(text), turn("after")])
        assert files_with(tmp_path, text[5000:5100])
        assert journal.scrub(text).changed == 1
        for at in range(0, len(text) - 60, 60):
            assert files_with(tmp_path, text[at : at + 60]) == []


def test_a_text_within_json_within_json_is_found(tmp_path: Path) -> None:
    """Arguments of a tool call are JSON inside a text: there the text stands escaped once more."""
    text = 'a "quoted" secret\nin lines'
    entry = turn("x")
    call = {"role": "assistant", "tool_calls": [{"function": {"arguments": json.dumps({"content": text})}}]}
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([attrs.evolve(entry, payload={**entry.payload, "messages": [call]})])
        assert journal.scrub(text).changed == 1
        arguments = journal.records()[0].payload["messages"][0]["tool_calls"][0]["function"]["arguments"]
        assert json.loads(arguments) == {"content": "[forgotten]"}


def test_no_remainder_stays_in_the_free_part_of_a_page(tmp_path: Path) -> None:
    """Among many records of many sizes, moved about as pages split and merge, not one copy is left."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.active = []
    for number in range(60):
        bench.journal.append([turn(f"{number} {SECRET} {'y' * (number * 37 % 900)}", f"s{number % 4}")])
        bench.journal.append([turn(f"{number} harmless {'z' * (number * 53 % 700)}", f"s{number % 4}")])
    bench.active = [PROVIDER]
    for _ in range(50):
        bench.deliverer.step()
    bench.journal.scrub(SECRET)
    assert files_with(tmp_path, SECRET) == []
    bench.journal.close()


def test_an_addition_that_waits_is_never_told(tmp_path: Path) -> None:
    """A memory that is forgotten before the provider heard of it does not reach it."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.journal.append([write("add", SECRET), turn("x")])
    assert bench.journal.scrub(SECRET).changed == 1
    bench.settle()
    assert bench.taker.kinds() == ["turn s1"]
    bench.journal.close()


def test_a_removal_that_waits_is_told_and_then_forgotten(tmp_path: Path) -> None:
    """The provider must be told what to forget: that record keeps the text until it is delivered, and no longer."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.active = []
    bench.journal.append([turn(f"I said {SECRET}"), write("remove", SECRET)])
    done = bench.journal.scrub(SECRET)
    assert (done.changed, done.waiting) == (1, 1)
    bench.active = [PROVIDER]
    bench.settle()
    assert bench.taker.got[0].payload["user"] == "I said [forgotten]"
    assert bench.taker.got[1].payload["content"] == SECRET
    assert files_with(tmp_path, SECRET) == []
    bench.journal.close()


def test_a_removal_that_was_only_accepted_is_not_kept(tmp_path: Path) -> None:
    """A provider that confirms nothing does not make the journal keep the text for a week."""
    bench = Bench(tmp_path / "journal.db", Taker(Sent.ACCEPTED))
    bench.active = []
    bench.journal.append([write("remove", SECRET)])
    bench.journal.scrub(SECRET)
    bench.active = [PROVIDER]
    bench.settle()
    assert bench.taker.got[0].payload["content"] == SECRET
    assert bench.journal.records() == []
    assert files_with(tmp_path, SECRET) == []
    bench.journal.close()


def test_a_replacement_by_the_forgotten_text_becomes_a_removal(tmp_path: Path) -> None:
    """The provider still hears that the former text no longer holds."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.journal.append([write("replace", SECRET, old_text="oven", previous_content="the oven is old")])
    bench.journal.scrub(SECRET)
    bench.settle()
    (record,) = bench.taker.got
    assert (record.payload["action"], record.payload["content"]) == ("remove", "the oven is old")
    bench.journal.close()


def test_a_replacement_of_the_forgotten_text_is_told(tmp_path: Path) -> None:
    """A pending replacement names what it replaces: it waits, as a removal does."""
    bench = Bench(tmp_path / "journal.db", Taker())
    bench.active = []
    bench.journal.append([write("replace", "new text", old_text="kiln", previous_content=SECRET)])
    assert bench.journal.scrub(SECRET).waiting == 1
    bench.active = [PROVIDER]
    bench.settle()
    assert bench.taker.got[0].payload["metadata"]["previous_content"] == SECRET
    assert files_with(tmp_path, SECRET) == []
    bench.journal.close()


def test_damaged_journals_that_were_kept_are_scrubbed_too(tmp_path: Path) -> None:
    """A copy that we set aside is no place to remember what was forgotten."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn(f"{n} {SECRET}") for n in range(30)])
    with (tmp_path / "journal.db").open("r+b") as file:
        file.write(b"\0" * 4096)
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.stats().moved_aside
        assert len(files_with(tmp_path, SECRET)) >= 2
        assert journal.scrub(SECRET).changed == 30
        assert files_with(tmp_path, SECRET) == []


def test_what_is_only_in_memory_is_scrubbed_too() -> None:
    """Without a file the records lose the text all the same."""
    with Journal(None) as journal:
        journal.append([turn(f"a {SECRET}")])
        assert journal.scrub(SECRET).changed == 1
        assert journal.records()[0].payload["user"] == "a [forgotten]"


def test_a_reader_that_keeps_the_log_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process still reads the old state, the file that could not be emptied is told."""
    import sqlite3

    monkeypatch.setattr(Database.truncate_log, "__defaults__", (0.05,))
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn(SECRET)])
        reader = sqlite3.connect(tmp_path / "journal.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM record").fetchone()
        assert [file.name for file in journal.scrub(SECRET).left] == ["journal.db-wal"]
        reader.execute("COMMIT")
        reader.close()
        assert journal.scrub(SECRET).left == ()
        assert files_with(tmp_path, SECRET) == []


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_nothing_to_forget_changes_nothing(tmp_path: Path, text: str) -> None:
    """An empty text is in no record."""
    with Journal(tmp_path / "journal.db") as journal:
        journal.append([turn("a b")])
        assert journal.scrub(text).changed == 0
        assert journal.records()[0].payload["user"] == "a b"
