"""The command line as a whole: root options, errors, pipes, interruption."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import hermes


def test_alone_it_says_what_to_do_first(home: Path) -> None:
    """Without arguments hermes says in a few lines what there is, and creates nothing."""
    done = hermes(home=home)
    assert done.returncode == 0
    assert "hermes memory status" in done.stdout
    assert len(done.stdout.splitlines()) < 15
    assert not home.exists()


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["--home", "elsewhere", "--version"]])
def test_version(home: Path, words: list[str]) -> None:
    """The version is one line on standard output, wherever it is asked for."""
    from hermes import __version__

    done = hermes(*words, home=home)
    assert (done.returncode, done.stdout) == (0, f"hermes {__version__}\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["memoy"], "Did you mean 'memory'?"),
        (["memory", "staus"], "Did you mean 'status'"),
        (["memory", "status", "--jsno"], "--json"),
        (["memory", "status", "--profile"], "requires an argument"),
        (["memory", "add"], "TEXT"),
    ],
)
def test_a_typo_is_one_line_with_a_next_step(home: Path, words: list[str], says: str) -> None:
    """A misspelt command or option exits 2 with one line that says what was meant and where to look."""
    done = hermes(*words, home=home)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert "--help" in done.stderr


def test_errors_are_objects_with_json(home: Path) -> None:
    """With --json an error is an object on standard error, with its type, exit code and next step."""
    done = hermes("--json", "-p", "nosuch", "memory", "status", home=home)
    error = json.loads(done.stderr)["error"]
    assert done.returncode == error["exit_code"] == 3
    assert error["type"] == "ProfileNotFound"
    assert error["name"] == "nosuch"
    assert "hermes profile create nosuch" in error["next_step"]


@pytest.mark.parametrize(
    "words",
    [
        ["--profile", "work", "--json", "memory", "status"],
        ["memory", "--profile", "work", "--json", "status"],
        ["memory", "status", "--profile", "work", "--json"],
        ["-p", "work", "memory", "status", "--json"],
        ["memory", "status", "-pwork", "--json"],
        ["--profile=work", "memory", "status", "--json"],
        ["-p", "default", "memory", "status", "--json", "-p", "work"],
        ["--target-profile", "work", "memory", "status", "--json"],
        ["memory", "status", "--json", "--target-profile=work"],
    ],
)
def test_root_options_stand_anywhere(home: Path, words: list[str]) -> None:
    """The root options are taken before the subcommand and after it; the innermost counts."""
    assert hermes("profile", "create", "work", home=home).returncode == 0
    done = hermes(*words, home=home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["profile"] == "work"


def test_after_two_dashes_nothing_is_an_option(home: Path) -> None:
    """What follows -- is a value, whatever it looks like."""
    done = hermes("memory", "add", "--", "--json is an option", home=home)
    assert done.returncode == 0, done.stderr
    assert "--json is an option" in hermes("memory", "list", home=home).stdout


def test_help_shows_the_root_options(home: Path) -> None:
    """Every root option is in the help of the root, with a line on what it does."""
    text = hermes("--help", home=home).stdout
    for option in (
        "--profile",
        "--target-profile",
        "--home",
        "--set",
        "--json",
        "--quiet",
        "--verbose",
        "--version",
    ):
        assert option in text


def test_no_traceback_without_verbose(home: Path) -> None:
    """An unforeseen error is one line; --verbose adds the traceback."""
    home.mkdir()
    (home / "config.yaml").write_text("memory: {provider: local}\n")
    broken = "import sys, hermes.settings\nhermes.settings.load = None\nfrom hermes.cli.app import run\n"
    for words, traceback in (([], False), (["--verbose"], True), (["-v"], True)):
        done = subprocess.run(
            [sys.executable, "-c", f"{broken}sys.exit(run({[*words, 'memory', 'status']!r}))"],
            env={**os.environ, "HERMES_HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) is traceback
        assert done.stderr.splitlines()[-1].startswith("hermes: TypeError")


def test_a_reader_that_goes_away_is_no_error(home: Path) -> None:
    """Piping into a command that reads one line leaves no traceback behind."""
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_text("\n§\n".join(f"note {n} " + "x" * 40 for n in range(30)))
    env = {**os.environ, "HERMES_HOME": str(home), "PYTHONSAFEPATH": "1"}
    for words in ("memory list", "--help", "memory export", "--version"):
        done = subprocess.run(
            ["bash", "-c", f"'{sys.executable}' -m hermes {words} | head -1; true"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        assert done.stdout.count("\n") <= 1
    read, write = os.pipe()
    os.close(read)  # gone before the first byte
    gone = subprocess.run(
        [sys.executable, "-m", "hermes", "memory", "list"],
        env=env,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert gone.stderr == b""


def test_ctrl_c_ends_with_130(home: Path) -> None:
    """An interrupted command exits 130 without a traceback."""
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes", "memory", "add", "-"],
        env={**os.environ, "HERMES_HOME": str(home)},
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stderr is not None
    select.select([child.stderr], [], [], 30)  # it says that it reads from the terminal
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    os.close(master)
    os.close(slave)
    assert child.returncode == 130
    assert b"Traceback" not in errors
    assert not (home / "memories").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(home: Path, shell: str) -> None:
    """A completion script can be had for each shell."""
    done = hermes(
        "--show-completion", shell, home=home, env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "_HERMES_COMPLETE" in done.stdout


def test_completion_knows_commands_and_profiles(home: Path) -> None:
    """Completion offers subcommands of lazily loaded groups, and the names of the profiles."""
    hermes("profile", "create", "work", home=home)
    for typed, expected in (("hermes memory sta", "status"), ("hermes -p wo", "work")):
        env = {
            "_HERMES_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
        }
        assert expected in hermes(home=home, env=env).stdout.split()
