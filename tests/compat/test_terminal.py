"""Asking at a terminal, in a pseudo-terminal; and without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compat.test_finder import STUB
from tests.support import python
from tests.terminal import Terminal

SECRET = "from hermes.compat.terminal import ask_secret\nprint('got', ascii(ask_secret('Key: ')))"
PICK = (
    "from hermes.compat.terminal import choose\n"
    "print('got', choose('Which one?', ['red', 'green', 'blue'], 1, -1))"
)
LEFT, UP, DOWN, F5, ALT_X = "\x1b[D", "\x1b[A", "\x1bOB", "\x1b[15~", "\x1bx"


def answered(code: str, typed: str, home: Path, waiting: str) -> str:
    """What the program prints after the person has typed."""
    with Terminal(home=home, program=("-c", code)) as terminal:
        terminal.expect(waiting)
        terminal.send(typed)
        assert terminal.wait() == 0, terminal.screen
        return terminal.screen.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("sk-12\r", "'sk-12'"),
        (f"ab{LEFT}{UP}c{F5}{ALT_X}d\r", "'abcd'"),
        ("\x1b[200~sk-pasted\r\n\x1b[201~\r", "'sk-pasted'"),
        ("\x1b[200~a\x1b[31mb\x1b[201~c\r", "'abc'"),
        ("\x1b]0;title\x07x\r", "'x'"),
        ("abc\x7f\x7fd\r", "'ad'"),
        ("wrong\x15right\r", "'right'"),
        ("a\x01\x02b\r", "'ab'"),
        ("ключ\r", r"'\u043a\u043b\u044e\u0447'"),
        ("\r", "''"),
    ],
    ids=[
        "plain",
        "keys",
        "paste",
        "paste with keys",
        "title",
        "backspace",
        "again",
        "control",
        "utf-8",
        "empty",
    ],
)
def test_a_secret_is_what_was_typed_and_nothing_else(typed: str, answer: str, home: Path) -> None:
    """Escape sequences, the marks of a paste and control characters never become part of a secret."""
    assert answered(SECRET, typed, home, "Key: ") == f"got {answer}"


def test_a_secret_is_not_shown(home: Path) -> None:
    """The terminal shows one mask for each character, and nothing of the secret."""
    with Terminal(home=home, program=("-c", SECRET.replace("ascii(", "len("))) as terminal:
        terminal.expect("Key: ")
        terminal.send("s3cret\r")
        assert terminal.wait() == 0
        assert "******" in terminal.screen
        assert "s3cret" not in terminal.screen
        assert terminal.screen.rstrip().endswith("got 6")


@pytest.mark.parametrize(("typed", "error"), [("ab\x03", "KeyboardInterrupt"), ("\x04", "EOFError")])
def test_leaving_a_secret_gives_the_terminal_back(typed: str, error: str, home: Path) -> None:
    """Ctrl-C and Ctrl-D end the question, and the terminal echoes again."""
    code = (
        "import sys, termios\n"
        "from hermes.compat.terminal import ask_secret\n"
        "try:\n    ask_secret('Key: ')\n"
        "except BaseException as exc:\n    print(type(exc).__name__)\n"
        "print('echo', bool(termios.tcgetattr(0)[3] & termios.ECHO))\n"
    )
    with Terminal(home=home, program=("-c", code)) as terminal:
        terminal.expect("Key: ")
        terminal.send(typed)
        terminal.expect(error)
        terminal.expect("echo True")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("\r", 1),
        (f"{DOWN}\r", 2),
        (f"{UP}{UP}\r", 2),
        ("kj\x1b[H\r", 0),
        ("\x1b[F ", 2),
        (f"{F5}{LEFT}\r", 1),
        ("\x1b", -1),
        ("q", -1),
    ],
    ids=["enter", "down", "around", "home", "end", "other keys", "escape", "q"],
)
def test_choosing_from_a_list(typed: str, answer: int, home: Path) -> None:
    """Arrows move and go around, Enter takes what is marked, Esc takes nothing; other keys change nothing."""
    assert answered(PICK, typed, home, "Esc leaves it").endswith(f"got {answer}")


def test_a_list_longer_than_the_terminal(home: Path) -> None:
    """A long list scrolls: the marked row is always on the screen, and no row takes two lines."""
    code = (
        "from hermes.compat.terminal import choose\n"
        "print('got', choose('Pick', [f'row {n} ' + 'x' * 300 for n in range(100)], 90, -1))"
    )
    with Terminal(home=home, program=("-c", code)) as terminal:
        before = terminal.expect("Esc leaves it")
        assert "→ (•) row 90" in before
        assert "row 10 " not in before
        assert all(len(line) < 100 for line in before.splitlines())
        terminal.send("\r")
        assert terminal.wait() == 0
        assert "got 90" in terminal.screen


def test_without_a_terminal_lines_are_read() -> None:
    """From a pipe, a secret is a line and a choice is a number; the end of the input is no answer."""
    done = python("-c", f"{SECRET}\n{PICK}\n{PICK}\n{PICK}", stdin="sk-1\n7\n3\n\n")
    assert done.returncode == 0, done.stderr
    said = [line.rpartition("got ")[2] for line in done.stdout.splitlines() if "got " in line]
    assert said == ["'sk-1'", "2", "1", "-1"]
    assert "'7' is none of them" in done.stdout
    assert "EOFError" in python("-c", SECRET).stderr


def test_the_questions_that_plugins_ask(tmp_path: Path) -> None:
    """The host modules ask so: a secret, one of several, one of several with something said of each."""
    code = (
        f"{STUB}\nfinder.install(Host(), worker=True)\n"
        "from hermes_cli.secret_prompt import masked_secret_prompt\n"
        "from hermes_cli.curses_ui import curses_radiolist\n"
        "from hermes_cli.memory_setup import _curses_select\n"
        "print('got', masked_secret_prompt('Key: '))\n"
        "print('got', curses_radiolist('Mode', ['local', 'cloud'], selected=1, description='Where it runs'))\n"
        "print('got', _curses_select('Mode', [('local', 'on this machine'), ('cloud', '')], 0))\n"
        "print('got', _curses_select('Mode', [('local', '')], 0, cancel_returns=-1))\n"
    )
    done = python("-c", code, stdin="sk-1\n\n2\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.rpartition("got ")[2] for line in done.stdout.splitlines() if "got " in line] == [
        "sk-1",
        "1",
        "1",
        "-1",
    ]
    assert "Where it runs" in done.stdout
    assert "1. local  on this machine" in done.stdout


def test_a_plugin_starts_the_setup_of_its_profile(home: Path) -> None:
    """``cmd_setup_provider`` runs the setup for the plugin's own profile, and its failure is the caller's."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from hermes.compat import finder\n"
        "from hermes.compat.profile_host import ProfileHost\n"
        "from hermes.containers import Hermes\n"
        "with Hermes(environ={}, home=Path(sys.argv[1])).open('work') as me:\n"
        "    finder.install(ProfileHost(me))\n"
        "    from hermes_cli.memory_setup import cmd_setup_provider\n"
        "    cmd_setup_provider(sys.argv[2])\n"
    )
    (home / "profiles" / "work").mkdir(parents=True)
    done = python("-c", code, str(home), "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it is the memory provider of 'work'" in done.stdout
    assert (home / "profiles" / "work" / "config.yaml").is_file()
    assert not (home / "config.yaml").exists()
    missing = python("-c", code, str(home), "nothing-there")
    assert missing.returncode != 0
    assert "nothing-there" in missing.stderr
