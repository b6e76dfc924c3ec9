"""``hermes memory off|reset``: what stops, what goes, and what asks first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import hermes

SECRET = "Rosa moves to Basel"


@pytest.fixture
def filled(home: Path) -> Path:
    """A home with entries in both halves and a turn in the provider."""
    for words in (["add", SECRET], ["add", f"{SECRET} too", "--target", "user"]):
        assert hermes("memory", *words, home=home).returncode == 0
    line = '{"role": "user", "content": "Did you know that Rosa moves to Basel?"}'
    assert hermes("memory", "ingest", home=home, stdin=line).returncode == 0
    return home


def holding(home: Path) -> list[Path]:
    """Files below *home* that hold the secret."""
    return [p for p in home.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]


def test_off_changes_one_line_and_keeps_what_is_stored(filled: Path) -> None:
    """Turning the provider off leaves its data, and turning it on again finds them."""
    before = (filled / "config.yaml").read_text() if (filled / "config.yaml").exists() else ""
    done = hermes("memory", "off", home=filled)
    assert done.returncode == 0, done.stderr
    assert "hermes config set memory.provider local" in done.stdout
    assert "local" not in hermes("memory", "search", "Basel", home=filled).stdout
    hermes("config", "set", "memory.provider", "local", home=filled)
    assert "local" in hermes("memory", "search", "Basel", home=filled).stdout
    assert len((filled / "config.yaml").read_text().splitlines()) <= max(len(before.splitlines()), 2)


def test_reset_leaves_no_trace(filled: Path) -> None:
    """After a reset no file below the home holds what was remembered, and memory starts anew."""
    assert holding(filled)
    done = hermes("memory", "reset", "--yes", home=filled)
    assert done.returncode == 0, done.stderr
    assert holding(filled) == []
    assert hermes("memory", "add", "A new start.", home=filled).returncode == 0


@pytest.mark.parametrize(("target", "left"), [("memory", "user"), ("user", "memory")])
def test_reset_of_one_half_leaves_the_other(filled: Path, target: str, left: str) -> None:
    """--target deletes one half and leaves the other and the provider's turns."""
    assert hermes("memory", "reset", "--target", target, "--yes", home=filled).returncode == 0
    text = hermes("memory", "list", home=filled).stdout
    assert left in text.splitlines()[0]
    assert len(text.splitlines()) == 2
    assert "Did you know" in hermes("memory", "search", "Basel", home=filled).stdout


def test_reset_asks(filled: Path) -> None:
    """Without a terminal and without --yes nothing is deleted, exit 2, and what would go is named."""
    done = hermes("memory", "reset", home=filled)
    assert done.returncode == 2
    assert "MEMORY.md" in done.stderr
    assert "--yes" in done.stderr
    assert holding(filled)


def test_a_profile_in_use_is_not_reset(filled: Path) -> None:
    """While another process has the profile open, reset names that process and deletes nothing."""
    script = (
        "from hermes.containers import Hermes\nwith Hermes().open() as me:\n"
        "    me.memory_manager().initialize_all('s1'); print('open', flush=True); input()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        env={"HERMES_HOME": str(filled), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    done = hermes("memory", "reset", "--yes", home=filled)
    child.communicate("\n", timeout=30)
    assert done.returncode == 4
    assert str(child.pid) in done.stderr
    assert holding(filled)
