"""Files of other programs: recognised by content, read the same twice, and never the end of an import."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes.importers import read
from hermes.memory.conversations import Malformed, Said
from tests.importers.making import FILES, chatgpt, claude_code, codex, hermes_agent
from tests.support import python


def found(path: Path) -> tuple[list[Said], list[Malformed], list[str]]:
    """What is read from *path*: messages, what could not be used, and what it was taken for."""
    told: list[str] = []
    everything = list(read(path, path.name, told=told.append))
    return (
        [one for one in everything if isinstance(one, Said)],
        [one for one in everything if isinstance(one, Malformed)],
        told,
    )


@pytest.mark.parametrize("kind", FILES)
def test_every_kind_is_recognised_and_only_words_are_read(kind: str, tmp_path: Path) -> None:
    """What the person and the model said is there, in order; injected, hidden and taken back texts are not."""
    make, expected = FILES[kind]
    messages, malformed, told = found(make(tmp_path))
    assert [message.text for message in messages] == expected
    assert malformed == []
    assert any(kind.split(",")[0].replace("MCP memory", "MCP") in name for name in told)


@pytest.mark.parametrize("kind", FILES)
def test_a_file_has_the_same_identities_when_it_is_read_again(kind: str, tmp_path: Path) -> None:
    """Under another name, the second time, the keys are those of the first; no two messages share one."""
    make, _ = FILES[kind]
    path = make(tmp_path)
    copy = tmp_path / "another name"
    shutil.copy(path, copy)
    keys = [message.key for message in found(path)[0]]
    assert keys == [message.key for message in found(copy)[0]]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("share", [0.15, 0.5, 0.9, 0.99])
def test_a_file_cut_off_anywhere_gives_what_is_whole(kind: str, share: float, tmp_path: Path) -> None:
    """A file cut in the middle raises nothing, gives no text that is not in it, and says what is missing."""
    make, expected = FILES[kind]
    path = make(tmp_path)
    data = path.read_bytes()
    cut = tmp_path / f"cut-{path.name}"
    cut.write_bytes(data[: int(len(data) * share)])
    messages, malformed, _ = found(cut)
    assert all(message.text in expected for message in messages)
    assert malformed or len(messages) < len(expected) or share == 0.99


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in ("hermes-agent", "ChatGPT, packed")])
def test_wrong_types_anywhere_are_named_and_the_rest_is_read(kind: str, tmp_path: Path) -> None:
    """Each value in turn replaced by a number, null, a text or a list: no exception, no text from nowhere."""
    make, expected = FILES[kind]
    text = make(tmp_path).read_text()
    lines = kind in ("Claude Code", "Codex", "MCP memory")
    document = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    for path in _paths(document):
        wrong: Any
        for wrong in (5, None, [], "text", {}):
            changed = json.loads(json.dumps(document))
            _put(changed, path, wrong)
            broken = tmp_path / "broken"
            broken.write_text("\n".join(map(json.dumps, changed)) if lines else json.dumps(changed))
            messages, _, _ = found(broken)
            assert all(message.role in ("user", "assistant") and message.text.strip() for message in messages)
            assert len(messages) <= len(expected) + 1


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, inner in items:
        found += [(*at, key), *_paths(inner, (*at, key))]
    return found


def _put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def test_a_broken_line_in_the_middle_costs_that_line_only(tmp_path: Path) -> None:
    """The lines around it are read, and it is named."""
    path = claude_code(tmp_path)
    rows = path.read_text().splitlines()
    path.write_text("\n".join([*rows[:3], "{broken", *rows[3:]]))
    messages, malformed, _ = found(path)
    assert len(messages) == 3
    assert {bad.where for bad in malformed} == {"claude-code.jsonl:4"}


def test_a_transcript_that_grew_keeps_its_identities(tmp_path: Path) -> None:
    """Lines appended by a resumed session add messages; those that were there keep their keys."""
    path = codex(tmp_path)
    before = [message.key for message in found(path)[0]]
    row = json.loads(path.read_text().splitlines()[3])
    row["payload"]["content"][0]["text"] = "And the spare one under the pot."
    path.write_text(path.read_text() + "\n" + json.dumps(row))
    after = [message.key for message in found(path)[0]]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_a_cycle_in_a_tree_ends(tmp_path: Path) -> None:
    """A message that is its own ancestor stops nothing."""
    path = chatgpt(tmp_path)
    document = json.loads(path.read_text())
    document[0]["mapping"]["a"]["parent"] = "e"
    path.write_text(json.dumps(document))
    assert "Feed Otto daily." in [message.text for message in found(path)[0]]


def test_a_database_in_use_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    """What is only in the write-ahead log is read too, and nothing is written beside the file."""
    path = hermes_agent(tmp_path)
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA journal_mode = WAL")
        con.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('b', 'user', 'From the log.', 40)"
        )
        con.commit()
        before = {
            file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")
        }
        assert found(path)[0][-1].text == "From the log."
        assert {f.name: f.read_bytes() for f in tmp_path.iterdir() if not f.name.endswith("-shm")} == before


def test_an_older_database_without_the_newer_columns_is_read(tmp_path: Path) -> None:
    """Columns that came later may be missing."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as con:
        con.executescript(
            "CREATE TABLE sessions (id TEXT, source TEXT, started_at REAL);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);"
            "INSERT INTO sessions VALUES ('s', 'cli', 1);"
            "INSERT INTO messages VALUES (1, 's', 'user', 'Old but here.', 2);"
        )
    assert [message.text for message in found(path)[0]] == ["Old but here."]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xef\xbb\xbf",
        b"SQLite format 3\0",
        b"PK\x03\x04",
        b"\xff\xfe\0\0",
        b"[",
        b"{",
        b"[1, 2]",
        b"null",
    ],
)
def test_what_is_none_of_it_is_named(content: bytes, tmp_path: Path) -> None:
    """Nothing that is in a file raises; an unknown one gives no message."""
    path = tmp_path / "file"
    path.write_bytes(content)
    messages, malformed, _ = found(path)
    assert messages == []
    assert malformed or content in (b"", b"\xef\xbb\xbf")


MEASURE = """
import resource, sys
from pathlib import Path
from hermes.importers import read
from hermes.memory.conversations import Said
count = sum(isinstance(one, Said) for one in read(Path(sys.argv[1]), "x"))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["Claude Code", "Codex", "ChatGPT", "Claude", "Mem0", "MCP memory"])
def test_two_hundred_megabytes_are_read_in_little_memory(kind: str, tmp_path: Path) -> None:
    """Memory does not grow with the file: a file ten times as long takes hardly more."""
    make, _ = FILES[kind]
    text = make(tmp_path).read_text()
    used = []
    for size in (20 << 20, 200 << 20):
        path = tmp_path / "large"
        _grow(path, kind, text, size)
        done = python("-c", MEASURE, str(path), timeout=600)
        assert done.returncode == 0, done.stderr
        count, rss = map(int, done.stdout.split())
        assert count > 1000
        used.append(rss)
    assert used[1] - used[0] < 64 << 10, used


def _grow(path: Path, kind: str, text: str, size: int) -> None:
    """Write *text* again and again, as one file of its kind."""
    pad = "word " * 200
    with path.open("w") as file:
        if kind in ("Claude Code", "Codex", "MCP memory"):
            rows = [json.loads(line) for line in text.splitlines()]
            for n in range(size):
                for row in rows:
                    line = json.dumps({**row, "pad": pad})
                    for name in ("uuid", "parentUuid"):
                        if row.get(name):
                            line = line.replace(f'"{row[name]}"', f'"{row[name]}-{n}"')
                    file.write(line + "\n")
                if file.tell() > size:
                    return
        document = json.loads(text)
        items = document["results"] if kind == "Mem0" else document
        file.write('{"results": [' if kind == "Mem0" else "[")
        item = json.dumps({**items[0], "pad": pad})
        file.write(item)
        while file.tell() < size:
            file.write(", " + item)
        file.write("]}" if kind == "Mem0" else "]")
