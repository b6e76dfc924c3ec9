"""``hermes memory ingest`` and ``export``: everything once, and everything out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importers.making import FILES
from tests.support import hermes, python

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


# -- files of other programs -----------------------------------------------------------------------------


def files_below(home: Path) -> dict[str, bytes]:
    """Every file of a home, byte for byte."""
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def texts(home: Path) -> list[str]:
    """What is stored, sorted."""
    records = map(json.loads, hermes("memory", "export", home=home).stdout.splitlines())
    return sorted(record["text"] for record in records if record.get("role") in ("user", "assistant"))


def test_every_kind_of_file_in_one_go_and_nothing_twice(home: Path, tmp_path: Path) -> None:
    """All kinds are recognised and taken in; again, packed or under other names, they add nothing."""
    made, expected = {}, set()
    for kind, (make, said) in FILES.items():
        folder = tmp_path / kind
        folder.mkdir()
        made[kind] = str(make(folder))
        expected |= set(said)
    report = ingest(home, *made.values())
    assert report["malformed"] == []
    assert report["undelivered"] == 0
    assert set(report["formats"]) >= {made["Claude Code"], made["hermes-agent"], made["Mem0"]}
    after = texts(home)
    assert {text for one in after for text in one.split("\n\n")} == {
        text for one in expected for text in one.split("\n\n")
    }
    again = ingest(home, *[made[kind] for kind in reversed(made)])
    assert again["taken"] == 0
    assert again["known"] >= report["taken"]
    assert texts(home) == after


def test_a_dry_run_writes_nothing(home: Path, tmp_path: Path) -> None:
    """It says what each file is and how much is new, and leaves every byte of the home as it was."""
    make, _ = FILES["ChatGPT"]
    export = str(make(tmp_path))
    dry = ingest(home, "--dry-run", export)
    assert (dry["taken"], dry["dry_run"]) == (2, True)
    assert not home.exists()
    told = hermes("memory", "ingest", "--dry-run", export, home=home)
    assert "an export of ChatGPT" in told.stdout
    assert "2 turns would be taken in from 2 conversations" in told.stdout

    ingest(home, str(write(tmp_path / "c", ("user", "Where is the kiln?"), ("assistant", "In Hall B."))))
    before = files_below(home)
    assert ingest(home, "--dry-run", export, str(tmp_path / "c"))["known"] == 1
    assert files_below(home) == before
    assert ingest(home, export)["taken"] == dry["taken"]


def test_an_import_that_was_killed_goes_on(home: Path, tmp_path: Path) -> None:
    """Killed between two batches, and run again: nothing is missing and nothing is there twice."""
    chat = tmp_path / "chat.jsonl"
    count = 1200
    lines = (
        {"role": role, "content": f"{what} {n} of the kiln"}
        for n in range(count)
        for role, what in (("user", "question"), ("assistant", "answer"))
    )
    chat.write_text("\n".join(map(json.dumps, lines)))
    die = (
        "import os, sys; from hermes.memory.manager import MemoryManager as M\n"
        "real, calls = M.sync_many, []\n"
        "def sync_many(self, turns):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 3: os.kill(os.getpid(), 9)\n"
        "    return real(self, turns)\n"
        "M.sync_many = sync_many\n"
        "sys.argv = ['hermes', 'memory', 'ingest', sys.argv[1]]\n"
        "from hermes.cli import main; main()"
    )
    assert python("-c", die, str(chat), env={"HERMES_HOME": str(home)}).returncode == -9
    report = ingest(home, str(chat))
    assert report["known"] == 1000
    assert report["taken"] == count - 1000
    said = texts(home)
    assert len(said) == len(set(said)) == 2 * count


def test_damaged_files_are_counted_and_named(home: Path, tmp_path: Path) -> None:
    """What is broken is named by file and place, beyond a thousand only counted, and the rest is taken in."""
    make, said = FILES["Claude Code"]
    path = make(tmp_path)
    rows = path.read_text().splitlines()
    path.write_text("\n".join([*rows[:3], *["{broken"] * 1100, *rows[3:]]))
    cut = FILES["Claude"][0](tmp_path)
    cut.write_bytes(cut.read_bytes()[:-40])
    report = ingest(home, str(path), str(cut))
    assert report["left_out"] == 1101
    assert len(report["malformed"]) == 1000
    assert report["malformed"][0]["where"] == f"{path}:4"
    assert set(said) <= set(texts(home))
    done = hermes("memory", "ingest", str(path), home=home)
    assert "1,080 more" in done.stderr


def test_secrets_of_other_programs_are_masked(home: Path, tmp_path: Path) -> None:
    """A key in a transcript and in a list of memories is stored nowhere, as if it had been said in a turn."""
    key = "sk-proj-" + "a1B2c3D4e5F6" * 4
    for kind, text in (("Claude Code", "I keep bees on the roof."), ("Mem0", "Sleeps with the window open")):
        folder = tmp_path / kind
        folder.mkdir()
        path = FILES[kind][0](folder)
        path.write_text(path.read_text().replace(text, f"{text} OPENAI_API_KEY={key}"))
        ingest(home, str(path))
    assert "bees" in " ".join(texts(home))
    assert not [name for name, data in files_below(home).items() if key.encode() in data]


def test_a_terminal_shows_how_far_it_is(home: Path, tmp_path: Path) -> None:
    """At a terminal a bar moves while a file is read; it is gone in the end, and the answer stays."""
    from tests.terminal import Terminal

    chat = tmp_path / "chat.jsonl"
    chat.write_text("\n".join(json.dumps({"role": "user", "content": f"kiln {n}"}) for n in range(1200)))
    with Terminal("memory", "ingest", str(chat), "--dry-run", home=home) as terminal:
        terminal.expect("[####")
        terminal.expect("turn")
        assert terminal.wait() == 0
        assert "would be taken in" in terminal.screen
