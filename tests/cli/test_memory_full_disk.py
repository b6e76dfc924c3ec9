"""Commands on a disk that takes nothing more: a clear line, the old content, and no half of anything."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import hermes

LINE = '{"role": "user", "content": "The kiln is in Hall C."}'


def on_a_full_disk(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command that cannot make any file longer than nothing."""
    command = f"ulimit -f 0; exec {shlex.join([sys.executable, '-m', 'hermes', *words])}"
    return subprocess.run(
        ["bash", "-c", command],
        env={"HERMES_HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1"},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["memory", "add", "another thing"],
        ["memory", "replace", "first", "another thing"],
        ["memory", "remove", "first"],
        ["memory", "ingest"],
        ["config", "set", "memory.nudge_interval", "5"],
        ["profile", "create", "work"],
    ],
)
def test_a_write_that_does_not_fit_is_one_line(home: Path, words: list[str]) -> None:
    """The command fails with one line that names what was not written, and everything is as it was."""
    for text in ("the first thing", "something else"):
        hermes("memory", "add", text, home=home)
    done = on_a_full_disk(home, *words, stdin=LINE)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("hermes: ")][-1:], done.stderr
    assert "the first thing" in hermes("memory", "list", home=home).stdout
    assert not list(home.rglob("*.tmp"))
    assert not (home / "profiles" / "work").exists()


def test_looking_goes_on(home: Path) -> None:
    """What is remembered is still recalled and listed."""
    hermes("memory", "add", "the first thing", home=home)
    for words in (["memory", "list"], ["memory", "recall", "the first thing"], ["memory", "export"]):
        done = on_a_full_disk(home, *words)
        assert done.returncode == 0, done.stderr
        assert "the first thing" in done.stdout


def test_what_did_not_fit_is_taken_in_later(home: Path) -> None:
    """Turns that a full disk did not take are no duplicates when they are taken in once there is room."""
    on_a_full_disk(home, "memory", "ingest", stdin=LINE)
    assert "1 turn taken in" in hermes("memory", "ingest", home=home, stdin=LINE).stdout
