"""``hermes plugins select|enable|disable``: one key each, and nothing else."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest

from tests.plugin_host.building import PROVIDER, plugin
from tests.support import hermes
from tests.terminal import Terminal

CONFIG = """\
# mine
memory:
    provider:   local      # the good one
    memory_char_limit: 3000

display: {compact: yes}   # of another program
plugins:
    notes:
        flavour: "1:30"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a hand-written config.yaml and a plugin."""
    home = tmp_path / "home"
    plugin(home / "plugins" / "notes")
    (home / "config.yaml").write_text(CONFIG)
    return home


def changes(home: Path) -> list[str]:
    """The lines that differ from the hand-written file."""
    now = (home / "config.yaml").read_text().splitlines()
    return [line for line in difflib.ndiff(CONFIG.splitlines(), now) if line[0] in "+-"]


def test_choosing_changes_one_key(home: Path) -> None:
    """A choice changes the value of memory.provider and not one other byte."""
    done = hermes("plugins", "select", "--memory", "notes", "--json", home=home)
    assert json.loads(done.stdout) == {
        "memory": "notes",
        "context_engine": "compressor",
        "changed": ["memory"],
    }
    assert (home / "config.yaml").read_text() == CONFIG.replace("provider:   local ", "provider:   notes ")


def test_choosing_what_is_chosen_changes_nothing(home: Path) -> None:
    """The same choice again leaves the file as it is, time included."""
    before = (home / "config.yaml").stat().st_mtime_ns
    done = hermes("plugins", "select", "--memory", "local", "--context", "compressor", home=home)
    assert "nothing was changed" in done.stdout
    assert (home / "config.yaml").stat().st_mtime_ns == before


def test_none_is_the_built_in_memory_alone(home: Path) -> None:
    """none switches the provider off."""
    assert hermes("plugins", "select", "--memory", "none", home=home).returncode == 0
    found = json.loads(hermes("plugins", "list", "--json", home=home).stdout)
    assert not any(row["active"] for row in found["plugins"] if row["kind"] == "memory")
    assert len(changes(home)) == 2


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ((), 2, "--memory NAME --context NAME"),
        (("--memory", "note"), 4, "did you mean 'notes'"),
        (("--memory", "../notes"), 4, "never by a path"),
        (("--memory", "notes", "--context", "nosuch"), 4, "context engine 'nosuch'"),
        (("--context", "notes"), 4, "context engine 'notes'"),
    ],
)
def test_what_cannot_be_chosen(home: Path, options: tuple[str, ...], code: int, says: str) -> None:
    """Without a terminal and options it exits 2; a choice that cannot be exits 4; nothing is written either way."""
    done = hermes("plugins", "select", *options, home=home)
    assert done.returncode == code
    assert says in done.stderr
    assert changes(home) == []


def test_a_choice_that_is_overridden_says_so(home: Path) -> None:
    """Where another layer comes first, the choice is written and the person is told."""
    (home / "config.local.yaml").write_text("memory: {provider: local}\n")
    (home / "config.yaml").write_text("memory:\n  provider: ''\n")
    done = hermes("plugins", "select", "--memory", "notes", home=home)
    assert "Memory provider: local" in done.stdout
    assert "set elsewhere too" in done.stderr


def test_a_provider_that_is_not_set_up_says_so(home: Path) -> None:
    """A provider that is chosen and not available yet is named with its reason and the next step."""
    source = PROVIDER.replace("return True", "return False").replace(
        "    def initialize",
        "    def unavailable_reason(self):\n        return 'no key'\n\n    def initialize",
    )
    plugin(home / "plugins" / "notes", source)
    done = hermes("plugins", "select", "--memory", "notes", home=home)
    assert done.returncode == 0
    assert "notes needs to be set up: no key (hermes memory setup notes)" in done.stderr


def test_at_a_terminal(home: Path) -> None:
    """``hermes plugins`` alone asks for both kinds; the current choice is where the mark starts."""
    with Terminal("plugins", home=home) as terminal:
        terminal.expect("Memory provider")
        terminal.expect("notes")
        terminal.send("\x1b[B\r")  # from local, where it starts, down to notes
        terminal.expect("Context engine")
        terminal.send("\r")
        terminal.expect("Memory provider: notes")
        assert terminal.wait() == 0
    assert (home / "config.yaml").read_text() == CONFIG.replace("provider:   local ", "provider:   notes ")


def test_ctrl_c_at_either_question(home: Path) -> None:
    """Ctrl-C says that nothing was changed, exits 130, and nothing is."""
    with Terminal("plugins", "select", home=home) as terminal:
        terminal.expect("Memory provider")
        terminal.expect("notes")
        terminal.send("\x1b[B\r")
        terminal.expect("Context engine")
        terminal.expect("compressor")
        terminal.send("\x03")
        terminal.expect("nothing was changed")
        assert terminal.wait() == 130
    assert changes(home) == []


def test_disable_and_enable(home: Path) -> None:
    """Disabling adds one key, enabling takes it out again byte for byte; both say when there is nothing to do."""
    done = hermes("plugins", "disable", "notes", home=home)
    assert (done.returncode, done.stdout) == (0, "notes is disabled\n")
    assert hermes("memory", "status", "--set", "memory.provider=notes", home=home).returncode == 4
    assert [line for line in changes(home) if line[0] == "-"] == []
    assert "already" in hermes("plugins", "disable", "notes", home=home).stdout
    assert json.loads(hermes("plugins", "enable", "notes", "--json", home=home).stdout) == {
        "name": "notes",
        "enabled": True,
        "changed": True,
    }
    assert (home / "config.yaml").read_text() == CONFIG
    assert "already" in hermes("plugins", "enable", "notes", home=home).stdout


def test_disabling_what_is_in_use_says_so(home: Path) -> None:
    """The active provider can be disabled; the person is told that there is none in use then."""
    done = hermes("plugins", "disable", "local", home=home)
    assert done.returncode == 0
    assert "memory.provider" in done.stderr


@pytest.mark.parametrize("word", ["enable", "disable"])
def test_an_unknown_name(home: Path, word: str) -> None:
    """A name that nothing answers to exits 3 with a hint and writes nothing."""
    done = hermes("plugins", word, "note", home=home)
    assert done.returncode == 3
    assert "did you mean 'notes'" in done.stderr
    assert changes(home) == []
