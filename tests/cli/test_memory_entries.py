"""``hermes memory list|add|replace|remove|undo|pending|approve|reject``, as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.containers import Hermes
from tests.support import hermes


def listed(home: Path, *words: str) -> list[dict[str, Any]]:
    """The entries, as --json lists them."""
    done = hermes("memory", "list", "--json", *words, home=home)
    assert done.returncode == 0, done.stderr
    entries: list[dict[str, Any]] = json.loads(done.stdout)
    return entries


def run(home: Path, *words: str, stdin: str = "") -> str:
    """What a command that goes well prints."""
    done = hermes("memory", *words, home=home, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_entry_is_added_listed_replaced_and_removed(home: Path) -> None:
    """The whole life of an entry, addressed by a part of its text and by its id."""
    assert "added" in run(home, "add", "Rosa prefers short answers.")
    run(home, "add", "Calls herself Ro.", "--target", "user")
    assert [(e["target"], e["text"]) for e in listed(home)] == [
        ("memory", "Rosa prefers short answers."),
        ("user", "Calls herself Ro."),
    ]
    assert "short answers" in run(home, "replace", "prefers", "Rosa prefers long answers.")
    (entry,) = listed(home, "--target", "memory")
    assert entry["text"] == "Rosa prefers long answers."
    assert entry["origin"]["write_origin"] == "person"
    run(home, "remove", entry["id"])
    assert listed(home, "--target", "memory") == []


def test_text_comes_from_standard_input(home: Path) -> None:
    """A dash reads the entry from standard input, several lines of it."""
    run(home, "add", "-", stdin="First line.\nSecond line.\n")
    assert listed(home)[0]["text"] == "First line.\nSecond line."


def test_adding_twice_changes_nothing(home: Path) -> None:
    """An entry that is there already is not added again, and that is said."""
    run(home, "add", "Rosa prefers tea.")
    assert "already" in run(home, "add", "Rosa prefers tea.")
    assert len(listed(home)) == 1


def test_undo_takes_the_last_change_back(home: Path) -> None:
    """Undo restores what a replace changed, then what an add added; then there is nothing left."""
    run(home, "add", "Rosa prefers tea.")
    run(home, "replace", "tea", "Rosa prefers coffee.")
    run(home, "undo")
    assert listed(home)[0]["text"] == "Rosa prefers tea."
    run(home, "undo")
    assert listed(home) == []
    assert hermes("memory", "undo", home=home).returncode == 3


def test_undo_by_origin(home: Path) -> None:
    """What the model wrote in one session is taken back together; what the person wrote stays."""
    run(home, "add", "The person said so.")
    with Hermes(environ={}, home=home).open() as me:
        manager = me.memory_manager()
        manager.initialize_all("s7")
        for text in ("The model found one thing.", "The model found another."):
            manager.handle_tool_call("memory", {"action": "add", "target": "memory", "content": text})
    assert len(listed(home)) == 3
    run(home, "undo", "--session", "s7")
    assert [e["text"] for e in listed(home)] == ["The person said so."]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["remove", "nothing like it"], 3, "nothing like it"),
        (["replace", "e", "x"], 2, "2 entries hold"),
        (["add", "  "], 2, ""),
        (["add", "x" * 3000], 2, "2,200"),
        (["add", "before\n§\nafter"], 2, "§"),
        (["add", "--target", "notes", "x"], 2, "memory"),
    ],
)
def test_a_write_that_cannot_be_is_explained(home: Path, words: list[str], code: int, says: str) -> None:
    """A write that is refused exits with its code, one line, and changes nothing."""
    run(home, "add", "The press is in Hall B.")
    run(home, "add", "The kiln is in Hall C.")
    done = hermes("memory", *words, home=home)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert len(listed(home)) == 2


def test_what_is_removed_is_gone_from_every_file(home: Path) -> None:
    """After a removal no file below the home holds the text: entry, history, journal, provider, backups."""
    secret = "Rosa moves to Basel in May"
    run(home, "add", secret)
    run(home, "replace", "Basel", f"{secret} and June")
    (home / "memories" / "MEMORY.md.bak.1700000000").write_text(f"{secret}\n")
    run(home, "remove", "Basel")
    holding = [p for p in home.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
    assert holding == []


def test_the_provider_is_told_of_every_change(home: Path) -> None:
    """An entry can be recalled from the provider, its new text in place of the old, and not once removed."""

    def found(word: str) -> list[dict[str, Any]]:
        records = json.loads(run(home, "search", word, "--json"))
        return [record for record in records if record["provider"] == "local"]

    run(home, "add", "Rosa keeps bees.")
    assert found("bees")
    run(home, "replace", "bees", "Rosa keeps goats.")
    assert found("goats")
    assert not found("bees")
    run(home, "remove", "goats")
    assert not found("goats")


def test_a_half_that_is_off_takes_nothing(home: Path) -> None:
    """With memory_enabled false no command writes that half, and status calls it off."""
    home.mkdir()
    (home / "config.yaml").write_text("memory:\n  provider: local\n  memory_enabled: false\n")
    done = hermes("memory", "add", "x is y", home=home)
    assert done.returncode != 0
    assert "memory.memory_enabled" in done.stderr
    assert not (home / "memories" / "MEMORY.md").exists()
    status = hermes("memory", "status", home=home)
    assert "off" in status.stdout


def stage(home: Path, *contents: str) -> list[str]:
    """Let the model ask for entries in a process of its own, with approval on; their ids."""
    script = (
        "import json, sys\nfrom hermes.containers import Hermes\nwith Hermes().open() as me:\n"
        "    m = me.memory_manager(); m.initialize_all('s1', platform='test')\n"
        "    for text in sys.argv[1:]:\n"
        "        r = m.handle_tool_call('memory', {'action': 'add', 'target': 'memory', 'content': text})\n"
        "        m.notify_memory_tool_write(r, {'action': 'add', 'target': 'memory', 'content': text})\n"
        "        print(json.loads(r)['id'])\n"
    )
    from tests.support import python

    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("memory:\n  provider: local\n  write_approval: true\n")
    done = python("-c", script, *contents, env={"HERMES_HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_staged_writes_wait_for_the_person(home: Path) -> None:
    """What the model wrote under approval is listed, applied by a fresh process, mirrored once, and gone."""
    first, second = stage(home, "The kiln needs a new door.", "Rosa is on leave.")
    assert listed(home) == []
    waiting = json.loads(run(home, "pending", "--json"))
    assert [item["id"] for item in waiting] == [first, second]
    assert "2 writes wait" in run(home, "status")
    run(home, "approve", first)
    run(home, "reject", second)
    assert [e["text"] for e in listed(home)] == ["The kiln needs a new door."]
    assert json.loads(run(home, "pending", "--json")) == []
    exported = [json.loads(line) for line in run(home, "export").splitlines()]
    assert sum(r["provider"] == "local" and "new door" in json.dumps(r) for r in exported) == 1


def test_approval_reports_item_by_item(home: Path) -> None:
    """One id that is unknown does not keep the others from being applied; the exit code is 1."""
    (first,) = stage(home, "The kiln needs a new door.")
    done = hermes("memory", "approve", "nosuch", first, "--json", home=home)
    assert done.returncode == 1
    assert {d["id"]: d["ok"] for d in json.loads(done.stdout)} == {"nosuch": False, first: True}
    assert len(listed(home)) == 1


def test_approving_names_something(home: Path) -> None:
    """Approve without ids and without --all is a question, not an approval of everything."""
    stage(home, "The kiln needs a new door.")
    assert hermes("memory", "approve", home=home).returncode == 2
    assert "saved" in run(home, "approve", "--all")
