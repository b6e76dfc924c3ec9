"""hermes config: show, get, set, unset, edit, path, check."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests import support

FILE = """\
# mine
memory:
  provider: local   # the default
  mem0: {api_key: topsecret-1, host: 'postgres://me:topsecret-2@h/d'}
auxiliary: {vision: {api_key: topsecret-3, max_tokens: 5}}
"""


@pytest.fixture
def config(home: Path) -> Path:
    """The config.yaml of the default profile."""
    home.mkdir()
    (home / "config.yaml").write_text(FILE)
    return home / "config.yaml"


def hermes(*args: str, home: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process: there are many calls here, and a process takes its time."""
    from hermes.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {"HERMES_HOME": str(home), **(env or {})}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(args)
    return subprocess.CompletedProcess(args, code, out.getvalue(), err.getvalue())


def as_json(*args: str, home: Path, env: dict[str, str] | None = None) -> Any:
    """What a command prints with --json."""
    done = hermes(*args, "--json", home=home, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_reading_commands_create_nothing(home: Path) -> None:
    """show, get, path and check of a home that does not exist leave it that way."""
    for words in (["show"], ["get", "memory.redact"], ["path"], ["check"]):
        done = support.hermes("config", *words, home=home)
        assert (done.returncode, done.stderr) == (0, "")
    assert not home.exists()


def test_show_masks_secrets_in_every_section(config: Path) -> None:
    """Ours, a plugin's and other hosts' alike, with and without --origin and --json; get too."""
    calls = [["show"], ["show", "--json"], ["show", "--origin"], ["show", "--origin", "--json"]]
    calls += [
        ["get", "memory"],
        ["get", "memory.mem0.api_key"],
        ["get", "auxiliary.vision.api_key", "--json"],
    ]
    for words in calls:
        done = hermes("config", *words, home=config.parent, env={"HERMES__MODEL__API_KEY": "topsecret-4"})
        assert done.returncode == 0, done.stderr
        assert "***" in done.stdout
        assert "topsecret" not in done.stdout + done.stderr
    shown = as_json("config", "show", home=config.parent)["settings"]
    assert shown["auxiliary"]["vision"] == {"api_key": "***", "max_tokens": 5}
    assert shown["memory"]["mem0"]["host"] == "postgres://***@h/d"


def test_show_origin_names_file_and_line(config: Path) -> None:
    """Every value with the layer that set it."""
    env = {"HERMES__MEMORY__NUDGE_INTERVAL": "3"}
    done = hermes("config", "show", "--origin", "--set", "memory.redact=no", home=config.parent, env=env)
    assert f"memory.provider: local  ({config}:3)" in done.stdout
    assert "memory.nudge_interval: 3  (environment)" in done.stdout
    assert "memory.redact: false  (--set)" in done.stdout
    assert "memory.memory_char_limit: 2200  (packaged defaults)" in done.stdout
    origin = as_json("config", "show", "--origin", home=config.parent)["origin"]
    assert origin["memory.provider"] == {"kind": "profile", "source": str(config), "line": 3}


def test_show_prints_keys_that_json_does_not_have(config: Path) -> None:
    """Numbers, null and dates as keys become texts in JSON."""
    config.write_text("1: [a]\nnull: b\n2024-01-02: 2024-01-03\n")
    shown = as_json("config", "show", home=config.parent)["settings"]
    assert (shown["1"], shown["None"], shown["2024-01-02"]) == (["a"], "b", "2024-01-03")


def test_get_what_is_in_force(config: Path) -> None:
    """A value as it is in force; one that is not set exits 3 and says what was meant."""
    home = config.parent
    assert hermes("config", "get", "memory.provider", home=home).stdout == "local\n"
    assert hermes("config", "get", "memory.timeouts", home=home).stdout.startswith("prefetch: 3\n")
    found = as_json("config", "get", "memory.memory_char_limit", home=home)
    assert (found["value"], found["origin"]["kind"]) == (2200, "default")
    done = hermes("config", "get", "memory.memory_char_limt", home=home)
    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean 'memory.memory_char_limit'?" in done.stderr
    assert hermes("config", "get", "a..b", home=home).returncode == 2


def test_set_and_unset_change_one_line(config: Path) -> None:
    """The rest of the file stays; types come from the schema."""
    home = config.parent
    assert hermes("config", "set", "memory.memory_char_limit", "3000", home=home).returncode == 0
    assert config.read_text() == FILE.replace("auxiliary", "  memory_char_limit: 3000\nauxiliary")
    assert as_json("config", "unset", "memory.memory_char_limit", home=home)["changed"] is True
    assert config.read_text() == FILE
    done = hermes("config", "unset", "memory.memory_char_limit", home=home)
    assert done.returncode == 3
    assert str(config) in done.stderr


@pytest.mark.parametrize(
    ("key", "text", "line"),
    [
        ("memory.write_approval", "yes", "write_approval: true"),
        ("journal.max_age", "12h", 'max_age: "12h"'),
        ("journal.max_age", "90", "max_age: 90"),
        ("plugins.disabled", "a, b", 'disabled: ["a", "b"]'),
        ("model.name", "12", 'name: "12"'),
        ("display.memory_notifications", "off", 'memory_notifications: "off"'),
        ("memory.x.word", "yes", 'word: "yes"'),
        ("memory.x.time", "1:30", 'time: "1:30"'),
        ("memory.x.switch", "true", "switch: true"),
        ("memory.x.number", "1.5", "number: 1.5"),
        ("memory.x.list", '["a", 1]', 'list: ["a", 1]'),
        ("memory.x.text", "null", 'text: "null"'),
    ],
)
def test_set_writes_the_declared_type(home: Path, key: str, text: str, line: str) -> None:
    """Where no type is declared, a plain number, switch or list is one, and everything else is text."""
    assert hermes("config", "set", key, text, home=home).returncode == 0
    assert line in (home / "config.yaml").read_text()


def test_set_leaves_a_text_a_text(config: Path) -> None:
    """A version 1.10 that is text does not become the number 1.1."""
    config.write_text("other: {x: 1}\nmem: {}\nversion: '1.9'\n")
    hermes("config", "set", "version", "1.10", home=config.parent)
    assert config.read_text().endswith('version: "1.10"\n')


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["memory.memory_char_limit", "abc"], 78, "expected a whole number"),
        (["memory.memory_char_limit", "--", "-5"], 78, "greater than 0"),
        (["memory.memory_char_limt", "5"], 78, "did you mean 'memory_char_limit'"),
        (["memory.provider", "../evil"], 78, "never a path"),
        (["memory.provider", "/etc/passwd"], 78, "never a path"),
        (["memory", "x"], 78, "expected a key below it"),
        (["memory.mem0.host", "x"], 78, "braces"),
        (["memory.mem0.api_key", "x"], 2, "MEM0_API_KEY"),
        (["a..b", "x"], 2, "no key"),
    ],
)
def test_set_refuses_in_one_line_and_changes_nothing(
    config: Path, words: list[str], code: int, says: str
) -> None:
    """A wrong type, an unknown key, a path for a name, a secret: each says what was expected."""
    done = hermes("config", "set", *words, home=config.parent)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert config.read_text() == FILE
    assert sorted(p.name for p in config.parent.iterdir() if "lock" not in p.name) == ["config.yaml"]


def test_set_says_what_is_odd(config: Path) -> None:
    """A provider that is not installed, and a layer that comes first, are remarked on standard error."""
    done = hermes("config", "set", "memory.provider", "nosuch", home=config.parent)
    assert done.returncode == 0
    assert "no plugin called 'nosuch' is installed" in done.stderr
    env = {"HERMES__MEMORY__REDACT": "no"}
    done = hermes("config", "set", "memory.redact", "true", home=config.parent, env=env)
    assert "environment says memory.redact too" in done.stderr


def test_the_key_of_the_model_goes_to_dotenv(home: Path) -> None:
    """It is private from birth, in force at once, and never shown."""
    done = hermes("config", "set", "model.api_key", "topsecret", home=home)
    assert (done.returncode, "topsecret" in done.stdout + done.stderr) == (0, False)
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
    assert hermes("config", "get", "model.api_key", home=home).stdout == "***\n"
    assert not (home / "config.yaml").exists()


def test_check_reports_every_mistake(config: Path) -> None:
    """File, line, key, what was expected, what was meant; exit 78, as JSON too."""
    config.write_text("memory:\n  memory_char_limit: abc\n  memory_char_limt: 5\n  redact: 5\n")
    (config.parent / "common.yaml").write_text("- a\n")
    done = hermes("config", "check", home=config.parent)
    assert done.returncode == 78
    assert done.stdout.splitlines() == [
        f"{config.parent / 'common.yaml'}:1: expected a mapping (lines of `key: value`), found a list",
        f"{config}:2: memory.memory_char_limit: expected a whole number, found the text 'abc'",
        f"{config}:3: memory.memory_char_limt: unknown key (did you mean 'memory_char_limit'?)",
        f"{config}:4: memory.redact: expected true or false, found the number 5",
    ]
    done = hermes("config", "check", "--json", home=config.parent)
    assert done.returncode == 78
    assert json.loads(done.stdout)["problems"][1] == {
        "key": "memory.memory_char_limit",
        "what": "expected a whole number, found the text 'abc'",
        "path": str(config),
        "line": 2,
        "fatal": True,
    }


def test_a_wrong_type_stops_other_commands_and_an_unknown_key_does_not(config: Path) -> None:
    """78 with the file and the line, or everything as ever."""
    config.write_text("memory:\n  memory_char_limit: abc\n")
    done = hermes("config", "get", "memory.redact", home=config.parent)
    assert done.returncode == 78
    assert f"{config}:2" in done.stderr
    config.write_text("memory:\n  memory_char_limt: 5\n")
    assert hermes("config", "get", "memory.redact", home=config.parent).returncode == 0


@pytest.mark.parametrize("content", [b"- a\n", b"a: [\n", b"a:\n\tb: 1\n", b"a: \xff\n"])
def test_no_command_overwrites_what_it_cannot_read(config: Path, content: bytes) -> None:
    """It refuses, names the file, and leaves every byte."""
    config.write_bytes(content)
    for words in (["set", "memory.provider", "local"], ["unset", "a"], ["show"]):
        done = hermes("config", *words, home=config.parent)
        assert done.returncode == 78
        assert str(config) in done.stderr
    assert config.read_bytes() == content


def test_path(home: Path) -> None:
    """Where the file is or would be; with a stale choice of profile too, with a warning."""
    assert hermes("config", "path", home=home).stdout == f"{home / 'config.yaml'}\n"
    home.mkdir()
    (home / "active_profile").write_text("gone\n")
    done = hermes("config", "path", home=home)
    assert (done.returncode, done.stdout) == (0, f"{home / 'profiles' / 'gone' / 'config.yaml'}\n")
    assert "gone" in done.stderr
    assert hermes("config", "show", home=home).returncode == 3


def test_the_target_profile_is_the_one_that_changes(config: Path) -> None:
    """--target-profile acts on that profile's file and leaves one's own alone."""
    other = config.parent / "profiles" / "work"
    other.mkdir(parents=True)
    done = hermes("--target-profile", "work", "config", "set", "memory.redact", "no", home=config.parent)
    assert done.returncode == 0, done.stderr
    assert (other / "config.yaml").read_text() == "memory:\n  provider: local\n  redact: false\n"
    assert config.read_text() == FILE


def test_edit_needs_a_terminal(config: Path) -> None:
    """Without one it says what to do in its place."""
    done = support.hermes("config", "edit", home=config.parent)
    assert done.returncode == 2
    assert "hermes config set" in done.stderr


def run_edit(home: Path, tmp_path: Path, script: str, answer: bytes = b"") -> tuple[int, str]:
    """``config edit`` at a terminal, with an editor that does *script* to the file."""
    editor = tmp_path / "editor.py"
    editor.write_text("import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n" + script)
    env = {
        **os.environ,
        "HERMES_HOME": str(home),
        "VISUAL": shlex.join([sys.executable, str(editor)]),
        "PYTHONSAFEPATH": "1",
    }
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes", "config", "edit"],
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        shown += block
    os.close(ours)
    return child.wait(timeout=60), shown.decode()


def test_edit_replaces_the_file_if_it_is_sound(config: Path, tmp_path: Path) -> None:
    """The editor gets a copy; the file is replaced in one step and keeps its mode."""
    config.chmod(0o640)
    script = f"assert path != pathlib.Path({str(config)!r})\npath.write_text(path.read_text() + 'x: 1\\n')\n"
    code, shown = run_edit(config.parent, tmp_path, script)
    assert code == 0, shown
    assert config.read_text() == FILE + "x: 1\n"
    assert config.stat().st_mode & 0o777 == 0o640


def test_edit_keeps_the_file_if_it_has_a_mistake(config: Path, tmp_path: Path) -> None:
    """The mistake is shown, the file stays, and what was written is kept and said where."""
    code, shown = run_edit(config.parent, tmp_path, "path.write_text('memory: 5\\n')\n", b"n\n")
    assert code != 0
    assert "expected a mapping" in shown
    assert config.read_text() == FILE
    copy = Path(shown.rpartition("what you wrote is in ")[2].strip(" )\r\n"))
    assert copy.read_text() == "memory: 5\n"
    assert copy.stat().st_mode & 0o077 == 0


def test_edit_does_not_undo_what_another_wrote(config: Path, tmp_path: Path) -> None:
    """A change made while the editor was open is kept."""
    script = f"pathlib.Path({str(config)!r}).write_text('y: 2\\n')\npath.write_text('x: 1\\n')\n"
    code, shown = run_edit(config.parent, tmp_path, script)
    assert code == 4
    assert "changed it meanwhile" in " ".join(shown.split())
    assert config.read_text() == "y: 2\n"


@pytest.mark.parametrize("script", ["", "sys.exit(3)\n"])
def test_edit_that_changes_nothing(config: Path, tmp_path: Path, script: str) -> None:
    """An editor that is left, or that fails, changes nothing."""
    code, _ = run_edit(config.parent, tmp_path, script)
    assert code == (1 if script else 0)
    assert config.read_text() == FILE
