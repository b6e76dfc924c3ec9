"""The files of the clients: our server comes and goes, every other byte stays."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hermes.clients.mcp_config import CLIENTS, Server, client
from hermes.errors import NotFound, StoreUnavailable
from tests.support import give_to_nobody, unprivileged

SERVER = Server("/opt/hermes", ("--profile", "work", "mcp", "serve"))
OTHER = Server("/opt/new/hermes", ("--profile", "work", "mcp", "serve"))

JSON = """{
  "theme": "dark",
  "KEY": {
    "other": {
      "command": "npx",
      "args": ["-y", "a server"],
      "env": {"TOKEN": "t\\u00e9"}
    }
  },
  "last": [1, 2]
}
"""
COMMENTED = """// for everybody in this project
{
\t"inputs": [
\t\t{ "id": "token", "type": "promptString" }, // asked for once
\t],
\t"KEY": {
\t\t/* theirs */
\t\t"other": { "type": "http", "url": "https://example.invalid/mcp" },
\t},
}
"""
TOML = """# my settings
model = "gpt-5"   # the good one

[mcp_servers.other]  # theirs
command = "npx"
args = ["-y", "a server"]

  [mcp_servers.other.env]
  TOKEN = "t"

[profiles.fast]
model = 'small'
"""
TEXTS = {
    "plain": JSON,
    "commented": COMMENTED,
    "one line": '{"a": 1, "KEY": {"other": {"command": "x"}}}',
    "empty": "",
}


def file_of(name: str, folder: Path, text: str | bytes) -> Path:
    """A file of the client *name*."""
    path = folder / ("config.toml" if CLIENTS[name].toml else "config.json")
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(data.replace(b"KEY", CLIENTS[name].key.encode()))
    return path


def parsed(name: str, path: Path) -> Any:
    """What a strict reader of the client finds."""
    from hermes.clients import jsonc

    text = path.read_bytes().decode("utf-8-sig")
    return tomllib.loads(text) if CLIENTS[name].toml else jsonc.loads(text)


def cases() -> list[tuple[str, str]]:
    """Every client with texts that it may have written."""
    found = [(name, text) for name, one in CLIENTS.items() if not one.toml for text in TEXTS.values()]
    return [*found, ("codex", TOML), ("codex", ""), ("codex", "[mcp_servers]\n"), ("codex", 'model = "x"')]


@pytest.mark.parametrize(("name", "text"), cases())
def test_our_server_comes_and_goes_and_nothing_else_changes(name: str, text: str, tmp_path: Path) -> None:
    """Every line that was there stays as it is, also when the command changes; removed, no trace is left."""
    path = file_of(name, tmp_path, text)
    before = path.read_bytes()
    key = CLIENTS[name].key

    CLIENTS[name].put(path, SERVER).write()
    data = parsed(name, path)
    assert data[key]["hermes"]["command"] == "/opt/hermes"
    assert data[key]["hermes"]["args"] == list(SERVER.args)
    kept = [line.rstrip(b",") for line in path.read_bytes().splitlines()]
    if b"\n" in before:
        assert [line for line in before.splitlines() if line.rstrip(b",") not in kept] == []
    for other, value in (parsed_before(name, before) or {}).items():
        if other != key:
            assert data[other] == value
        else:
            assert {**value, "hermes": data[key]["hermes"]} == data[key]

    assert not CLIENTS[name].put(path, SERVER).differs
    CLIENTS[name].put(path, OTHER).write()
    assert parsed(name, path)[key]["hermes"]["command"] == "/opt/new/hermes"
    assert list(parsed(name, path)[key]).count("hermes") == 1

    CLIENTS[name].remove(path).write()
    assert b"hermes" not in path.read_bytes()
    if text and "[mcp_servers]" not in text:
        assert path.read_bytes().rstrip() == before.rstrip()
    assert not CLIENTS[name].remove(path).differs


def parsed_before(name: str, data: bytes) -> Any:
    """The values of a text that may be empty."""
    from hermes.clients import jsonc

    if not data.strip():
        return {}
    return tomllib.loads(data.decode()) if CLIENTS[name].toml else jsonc.loads(data.decode())


@pytest.mark.parametrize("name", CLIENTS)
def test_what_is_printed_is_what_is_written(name: str, tmp_path: Path) -> None:
    """The configuration that is shown gives the same server as the one that is put into a file."""
    path = tmp_path / "new"
    change = CLIENTS[name].put(path, SERVER)
    assert change.before is None
    assert change.write() is None
    shown = CLIENTS[name].shown(SERVER)
    told = tomllib.loads(shown) if CLIENTS[name].toml else json.loads(shown)
    assert told == parsed(name, path)
    entry = told[CLIENTS[name].key]["hermes"]
    assert (entry.get("type") == "stdio") == (name in ("claude-code", "vscode"))


@pytest.mark.parametrize("name", CLIENTS)
def test_a_mark_at_the_front_and_windows_line_ends_stay(name: str, tmp_path: Path) -> None:
    """A file from Windows keeps its form, in the lines that are added too."""
    text = TOML if CLIENTS[name].toml else JSON
    path = file_of(name, tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    before = path.read_bytes()
    CLIENTS[name].put(path, SERVER).write()
    after = path.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.count(b"\n") == after.count(b"\r\n")
    assert parsed(name, path)[CLIENTS[name].key]["hermes"]
    CLIENTS[name].remove(path).write()
    assert path.read_bytes().rstrip() == before.rstrip()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", '{"mcpServers": 5}'),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": {}, "mcpServers": {}}'),
        ("vscode", '{"servers": []}'),
        ("codex", "[mcp_servers\n"),
        ("codex", "mcp_servers = 5\n"),
        ("claude-code", b"\xff\xfe{\0}\0"),
    ],
)
def test_what_is_not_understood_is_left_alone(name: str, text: str | bytes, tmp_path: Path) -> None:
    """A broken file is named with the reason, and not a byte of it changes."""
    path = file_of(name, tmp_path, text)
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable) as caught:
        CLIENTS[name].put(path, SERVER)
    assert str(path) in str(caught.value)
    assert caught.value.next_step
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_as_it_was_is_kept_beside_it(tmp_path: Path) -> None:
    """Each change has a backup of its own, with the mode of the file; a link is followed."""
    real = file_of("cursor", tmp_path, JSON)
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    first = CLIENTS["cursor"].put(link, SERVER).write()
    second = CLIENTS["cursor"].put(link, OTHER).write()
    assert first is not None
    assert second is not None
    assert first != second
    assert first.read_text() == JSON.replace("KEY", "mcpServers")
    assert "/opt/hermes" in second.read_text()
    assert (first.stat().st_mode & 0o777, real.stat().st_mode & 0o777) == (0o640, 0o640)
    assert link.is_symlink()


def test_a_file_that_was_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    """Between the look and the answer somebody else wrote: that stays."""
    path = file_of("cursor", tmp_path, JSON)
    change = CLIENTS["cursor"].put(path, SERVER)
    path.write_text('{"somebody": "else"}')
    with pytest.raises(StoreUnavailable, match="meanwhile"):
        change.write()
    assert path.read_text() == '{"somebody": "else"}'


def test_a_folder_that_cannot_be_written(reachable: Path) -> None:
    """A read-only folder is an error with the path, and the file stays as it is."""
    path = file_of("cursor", reachable, JSON)
    give_to_nobody(reachable)
    reachable.chmod(0o555)
    change = CLIENTS["cursor"].put(path, SERVER)

    def write() -> None:
        with pytest.raises(StoreUnavailable, match="cannot be written"):
            change.write()

    unprivileged(write)
    assert path.read_text() == JSON.replace("KEY", "mcpServers")


def test_where_the_files_are(tmp_path: Path) -> None:
    """The file of the person or of the project, as each client looks for it; variables that move it count."""
    home, project = tmp_path / "home", tmp_path / "project"
    environ = {"HOME": str(home)}
    where = {name: one.where(environ, project) for name, one in CLIENTS.items()}
    assert where["claude-code"] == project / ".mcp.json"
    assert where["vscode"] == project / ".vscode" / "mcp.json"
    assert where["cursor"] == home / ".cursor" / "mcp.json"
    assert where["codex"] == home / ".codex" / "config.toml"
    assert where["claude-desktop"].name == "claude_desktop_config.json"
    assert CLIENTS["codex"].where({**environ, "CODEX_HOME": "/c"}, project) == Path("/c/config.toml")
    with pytest.raises(NotFound, match="emacs"):
        client("emacs")
