"""``hermes memory ingest`` and ``export``: everything once, and everything out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import hermes

ROOT = Path(__file__).resolve().parents[2]


def write(path: Path, *messages: tuple[str, str], conversation: str | None = None) -> Path:
    """Messages as JSON Lines in *path*."""
    extra = {"conversation_id": conversation} if conversation else {}
    path.write_text(
        "".join(json.dumps({"role": role, "content": text, **extra}) + "\n" for role, text in messages)
    )
    return path


def ingest(home: Path, *words: str, stdin: str = "") -> dict[str, Any]:
    """The report of an ingest that went well."""
    done = hermes("memory", "ingest", "--json", *words, home=home, stdin=stdin)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def stored(home: Path) -> list[str]:
    """The texts of every stored turn, as exported."""
    done = hermes("memory", "export", home=home)
    assert done.returncode == 0, done.stderr
    return [json.dumps(json.loads(line), ensure_ascii=False) for line in done.stdout.splitlines()]


def test_the_same_file_twice_adds_nothing(home: Path, tmp_path: Path) -> None:
    """A file that was taken in before is known turn by turn."""
    chat = write(tmp_path / "chat.jsonl", ("user", "The host is pve-07."), ("assistant", "Noted."))
    assert (ingest(home, str(chat))["taken"], ingest(home, str(chat))["taken"]) == (1, 0)
    assert ingest(home, str(chat))["known"] == 1
    assert sum("pve-07" in line for line in stored(home)) == 1


def test_a_longer_file_adds_the_rest(home: Path, tmp_path: Path) -> None:
    """A conversation that went on adds its new messages only, an answer to a known question included."""
    chat = tmp_path / "chat.jsonl"
    messages = [("user", "alpha question"), ("assistant", "beta answer"), ("user", "gamma question")]
    ingest(home, str(write(chat, *messages)))
    ingest(home, str(write(chat, *messages, ("assistant", "delta answer"), ("user", "epsilon question"))))
    everything = "\n".join(stored(home))
    for word in ("alpha", "beta", "gamma", "delta", "epsilon"):
        assert everything.count(word) == 1, word


def test_two_equal_lines_are_both_kept(home: Path, tmp_path: Path) -> None:
    """What was said twice in one conversation was said twice."""
    chat = write(tmp_path / "chat.jsonl", *[("user", "Any news from Rosa?"), ("assistant", "No.")] * 2)
    assert ingest(home, str(chat))["taken"] == 2
    assert sum("Any news from Rosa?" in line for line in stored(home)) == 2


def test_standard_input(home: Path) -> None:
    """Without a file, or with -, the conversation comes from standard input."""
    line = json.dumps({"role": "user", "content": "The kiln is at 1240 degrees."})
    assert ingest(home, stdin=line)["taken"] == 1
    assert ingest(home, "-", stdin=line)["known"] == 1


def test_what_cannot_be_used_is_named(home: Path, tmp_path: Path) -> None:
    """A broken line is told by file and line, and the others are taken in."""
    chat = write(tmp_path / "chat.jsonl", ("user", "one thing"), ("assistant", "fine"))
    chat.write_text(
        chat.read_text() + "{broken\n" + json.dumps({"role": "user", "content": "another"}) + "\n"
    )
    done = hermes("memory", "ingest", str(chat), home=home)
    assert done.returncode == 0
    assert "2 turns taken in" in done.stdout
    assert f"{chat}:3" in done.stderr


@pytest.mark.parametrize("content", ["", "not a conversation at all\n", "[]", "{}"])
def test_a_file_with_nothing_in_it(home: Path, tmp_path: Path, content: str) -> None:
    """A file without a single message takes nothing in, and one that is no conversation is an error."""
    file = tmp_path / "x"
    file.write_text(content)
    done = hermes("memory", "ingest", str(file), home=home)
    assert done.returncode == (0 if content in ("", "[]") else 1)
    assert "Traceback" not in done.stderr


def test_a_missing_file_stops_everything(home: Path, tmp_path: Path) -> None:
    """One file of several that is not there is found before anything is taken in."""
    chat = write(tmp_path / "chat.jsonl", ("user", "hello there Rosa"))
    done = hermes("memory", "ingest", str(chat), str(tmp_path / "nosuch"), home=home)
    assert done.returncode == 3
    assert "nosuch" in done.stderr
    assert not (home / "journal.db").exists()


def test_without_a_provider_there_is_nowhere_to_put_it(home: Path, tmp_path: Path) -> None:
    """With the provider off the command says how to turn one on, and takes nothing."""
    home.mkdir()
    (home / "config.yaml").write_text("memory:\n  provider: ''\n")
    done = hermes("memory", "ingest", str(write(tmp_path / "c", ("user", "hi Rosa"))), home=home)
    assert done.returncode == 4
    assert "hermes config set memory.provider local" in done.stderr


def test_secrets_are_masked(home: Path, tmp_path: Path) -> None:
    """A key that was pasted into a conversation is not stored."""
    key = "sk-proj-" + "a1B2c3D4e5F6" * 4
    ingest(home, str(write(tmp_path / "c", ("user", f"use OPENAI_API_KEY={key} please"), ("assistant", key))))
    assert stored(home)
    assert key.encode() not in b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())


def test_lone_surrogates(home: Path) -> None:
    """Half an emoji from a split stream is no reason to lose the turn."""
    assert ingest(home, stdin='{"role": "user", "content": "kiln \\ud83d status"}')["taken"] == 1
    assert any("kiln" in line for line in stored(home))


def test_the_example_is_recalled_in_another_session(home: Path) -> None:
    """The conversation that comes with hermes is taken in whole, and a question is answered from it."""
    example = ROOT / "examples" / "conversation.jsonl"
    report = ingest(home, str(example))
    assert report["conversations"] == 6
    assert report["taken"] >= 55
    assert report["malformed"] == []
    assert report["undelivered"] == 0


def test_export_is_everything(home: Path, tmp_path: Path) -> None:
    """Built-in entries and every turn come out, one JSON object a line, with the provider that has it."""
    hermes("memory", "add", "Rosa prefers tea.", home=home)
    ingest(home, str(write(tmp_path / "c", ("user", "Where is the kiln?"), ("assistant", "In Hall B."))))
    records = [json.loads(line) for line in hermes("memory", "export", home=home).stdout.splitlines()]
    assert {record["provider"] for record in records} == {"builtin", "local"}
    text = json.dumps(records)
    for said in ("Rosa prefers tea.", "Where is the kiln?", "In Hall B."):
        assert said in text
