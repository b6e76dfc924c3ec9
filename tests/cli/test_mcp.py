"""``hermes mcp config``: shown, asked, written with a backup, removed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support import hermes, python
from tests.terminal import Terminal

CLIENTS = ["claude-code", "claude-desktop", "cursor", "codex", "vscode"]


def test_it_prints_a_command_that_starts_the_server(home: Path, tmp_path: Path) -> None:
    """What is printed for a client runs the server of that profile, from any folder and without a PATH."""
    assert hermes("profile", "create", "work", home=home).returncode == 0
    done = hermes("-p", "work", "mcp", "config", "cursor", home=home, env={"HOME": str(tmp_path)})
    server = json.loads(done.stdout)["mcpServers"]["hermes"]
    assert Path(server["command"]).is_absolute()
    assert server["args"][-2:] == ["mcp", "serve"]
    assert server["args"][server["args"].index("--profile") + 1] == "work"
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    ran = subprocess.run(
        [server["command"], *server["args"]],
        env={"PATH": ""},
        cwd=tmp_path,
        input=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(ran.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "hermes"
    assert not (tmp_path / ".cursor").exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_written_and_removed(client: str, home: Path, tmp_path: Path) -> None:
    """Into the file that the client reads, shown first; the second time there is nothing to do; removed again."""
    env = {"HOME": str(tmp_path)}
    args = ("mcp", "config", client)
    written = hermes(*args, "--write", "--yes", home=home, env=env, cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert "+" in written.stderr
    again = json.loads(hermes(*args, "--write", "--yes", "--json", home=home, env=env, cwd=tmp_path).stdout)
    assert again["changed"] is False
    path = Path(again["file"])
    assert tmp_path in path.parents
    assert "mcp" in path.read_text()
    removed = json.loads(
        hermes(*args, "--remove", "--yes", "--json", home=home, env=env, cwd=tmp_path).stdout
    )
    assert removed["changed"] is True
    assert "hermes" not in path.read_text()
    assert "hermes" in Path(removed["backup"]).read_text()


def test_the_person_is_asked_first(home: Path, tmp_path: Path) -> None:
    """At a terminal the difference is shown and no is no; with nobody there it is refused; yes writes."""
    path = tmp_path / "mcp.json"
    path.write_text('{\n  "mcpServers": {"other": {"command": "x"}}\n}\n')
    before = path.read_text()
    args = ("mcp", "config", "cursor", "--write", "--file", str(path))
    nobody = hermes(*args, home=home)
    assert nobody.returncode == 2
    assert "--yes" in nobody.stderr
    with Terminal(*args, home=home) as terminal:
        shown = terminal.expect("[y/N]")
        assert "+" in shown
        assert "mcp" in shown
        terminal.send("n\r")
        assert terminal.wait() == 1
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
    with Terminal(*args, home=home) as terminal:
        terminal.expect("[y/N]")
        terminal.send("y\r")
        assert terminal.wait() == 0
    assert set(json.loads(path.read_text())["mcpServers"]) == {"other", "hermes"}
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".bak", ".json"]


def test_without_the_package_it_says_what_to_install(home: Path) -> None:
    """The server needs an extra: without it the command ends with exit 4 and the line that installs it."""
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['hermes', 'mcp', 'serve'];"
        "from hermes.cli import main; main()"
    )
    done = python("-c", code, env={"HERMES_HOME": str(home)})
    assert done.returncode == 4
    assert "hermes-framework[mcp]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_at_a_terminal_it_says_what_it_waits_for(home: Path) -> None:
    """Who starts the server by hand is told that it waits for a client; Ctrl-C ends it cleanly."""
    with Terminal("mcp", "serve", home=home) as terminal:
        terminal.expect("hermes mcp config")
        terminal.send("\x03")
        assert terminal.wait() in (0, 130)
        assert "Traceback" not in terminal.screen


def test_mistakes(home: Path, tmp_path: Path) -> None:
    """An unknown client, both options at once, a broken file and a profile that is not there: each its exit code."""
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for code, args in (
        (3, ("emacs",)),
        (2, ("cursor", "--write", "--remove")),
        (4, ("cursor", "--write", "--yes", "--file", str(broken))),
        (3, ("cursor", "-p", "gone")),
    ):
        done = hermes("mcp", "config", *args, home=home, env={"HOME": str(tmp_path)})
        assert done.returncode == code, done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert broken.read_text() == "{"
    assert not home.exists()
    # who removes a profile can still take it out of a client
    assert (
        hermes(
            "mcp", "config", "cursor", "--remove", "-p", "gone", home=home, env={"HOME": str(tmp_path)}
        ).returncode
        == 0
    )
