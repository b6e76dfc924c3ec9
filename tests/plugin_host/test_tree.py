"""The command tree of a plugin: found, imported without its package, built and run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.plugin_host import tree
from tests.plugin_host.building import plugin

PACKAGE = (
    "from pathlib import Path\nPath(__file__).with_name('imported').touch()\nLABEL = 'from the package'\n"
)
CLI = """\
from .texts import GREETING


def greet(args):
    print(GREETING, args.times, args.rest)
    return 7


def register_cli(subparser):
    commands = subparser.add_subparsers(dest="command", required=True)
    greet_parser = commands.add_parser("greet", help="Say hello")
    greet_parser.add_argument("--times", type=int, default=1, choices=[1, 2, 12])
    greet_parser.add_argument("rest", nargs="*")
    greet_parser.set_defaults(func=greet)
    commands.add_parser("leave", help="Go")
"""


def spec(folder: Path, cli: str, name: str = "my-notes", **files: str) -> dict[str, Any]:
    """A plugin in *folder* whose ``cli.py`` is *cli*, as loading is told of it."""
    plugin(folder / name, PACKAGE, "name: it\n", cli=cli, **files)
    return {"name": name, "path": str(folder / name), "root": None, "entry": "", "bundled": False}


@pytest.fixture
def notes(tmp_path: Path) -> dict[str, Any]:
    """A plugin with a tree and a module beside it."""
    return spec(tmp_path, CLI, texts="GREETING = 'hello'\n")


def run(found: dict[str, Any], *words: str) -> int:
    """The exit code of ``hermes my-notes`` with *words*."""
    return tree.run(found, words, prog="hermes my-notes")


def test_a_tree_runs_without_its_package(notes: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Relative imports work, a handler's number is the exit code, and the package itself is not imported."""
    assert run(notes, "greet", "--times", "2", "--", "--x", "-y") == 7
    assert capsys.readouterr().out == "hello 2 ['--x', '-y']\n"
    assert not Path(notes["path"], "imported").exists()
    assert not [name for name in sys.modules if name == "my-notes" or name.startswith("my_notes")]


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["--help"], 0, "usage: hermes my-notes", ""),
        (["greet", "-h"], 0, "usage: hermes my-notes greet", ""),
        (["greet", "--times", "3"], 2, "", "invalid choice: 3"),
        ([], 2, "", "required: command"),
        (["leave"], 2, "", "usage: hermes my-notes"),
    ],
)
def test_help_and_mistakes_are_argparse_s(
    notes: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    out: str,
    err: str,
) -> None:
    """Help ends with 0, a mistake with 2 and its usage; so does a command that nothing handles."""
    assert run(notes, *words) == code
    shown = capsys.readouterr()
    assert out in shown.out
    assert err in shown.err
    assert bool(shown.out) is bool(out)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit", 0),
        ("raise SystemExit('no')", 1),
        ("return None", 0),
        ("return True", 0),
        ("return 'text'", 0),
        ("return 5", 5),
    ],
)
def test_exit_codes(tmp_path: Path, body: str, code: int) -> None:
    """An exit gives its code, a number returned is the code, anything else is success."""
    cli = f"def my_notes_command(args):\n    {body}\n\ndef register_cli(subparser):\n    pass\n"
    assert run(spec(tmp_path, cli)) == code


@pytest.mark.parametrize(
    "named",
    [
        "def my_notes_command(args): return 9",
        "globals()['my-notes_command'] = lambda args: 9",
    ],
)
def test_one_function_for_every_command(tmp_path: Path, named: str) -> None:
    """Without a func, NAME_command is called; a hyphen in the name is an underscore there, or a hyphen."""
    cli = f"def register_cli(subparser):\n    subparser.add_subparsers().add_parser('status')\n{named}\n"
    assert run(spec(tmp_path, cli), "status") == 9


def test_what_a_handler_raises_goes_through(tmp_path: Path) -> None:
    """An error is no exit: who runs the tree says it."""
    cli = "def my_notes_command(args):\n    raise OSError('down')\n\ndef register_cli(subparser):\n    pass\n"
    found = spec(tmp_path, cli)
    with pytest.raises(OSError, match="down"):
        run(found)


def test_a_parser_taken_for_a_group_of_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """add_parser on what register_cli is given: the only one added is the tree itself, under the word called."""
    cli = """\
def register_cli(subparsers):
    mine = subparsers.add_parser("notes", help="My notes", aliases=["n"])
    below = mine.add_subparsers(dest="action", required=True)
    below.add_parser("status", help="How it is").set_defaults(func=lambda args: 4)
"""
    found = spec(tmp_path, cli)
    assert run(found, "status") == 4
    assert run(found, "--help") == 0
    assert "usage: hermes my-notes [-h] {status}" in capsys.readouterr().out
    assert tree.words(found, [], "st", prog="hermes my-notes") == [("status", "How it is")]


def test_several_parsers_in_such_a_group(tmp_path: Path) -> None:
    """Where more than one is added, each is a command."""
    cli = """\
def register_cli(subparsers):
    subparsers.add_parser("one").set_defaults(func=lambda args: 1)
    subparsers.add_parser("two").set_defaults(func=lambda args: 2)
"""
    found = spec(tmp_path, cli)
    assert [run(found, "one"), run(found, "two")] == [1, 2]


@pytest.mark.parametrize(
    ("given", "incomplete", "expected"),
    [
        ([], "", ["--help", "greet", "leave"]),
        ([], "gr", ["greet"]),
        (["greet"], "--t", ["--times"]),
        (["greet", "--times"], "1", ["1", "12"]),
        (["greet", "--times", "1"], "-", ["--help", "--times"]),
    ],
)
def test_completion(notes: dict[str, Any], given: list[str], incomplete: str, expected: list[str]) -> None:
    """Commands, options and choices are offered where they can stand; the package is not imported."""
    assert [word for word, _ in tree.words(notes, given, incomplete, prog="hermes my-notes")] == expected
    assert not Path(notes["path"], "imported").exists()


def test_a_name_that_only_the_package_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """from . import NAME imports the module of that name, else the package, and no more than that."""
    cli = """\
from . import texts

def my_notes_command(args):
    print(texts.GREETING)
    if args.package:
        from . import LABEL
        print(LABEL)

def register_cli(subparser):
    subparser.add_argument("--package", action="store_true")
"""
    found = spec(tmp_path, cli, texts="GREETING = 'hello'\n")
    assert run(found) == 0
    assert not Path(found["path"], "imported").exists()
    assert run(found, "--package") == 0
    assert Path(found["path"], "imported").exists()
    assert capsys.readouterr().out == "hello\nhello\nfrom the package\n"


def test_two_plugins_of_one_name_run_their_own_code(tmp_path: Path) -> None:
    """The tree of another profile's plugin of the same name is not the one that ran before."""
    cli = "from .texts import CODE\n\ndef my_notes_command(args):\n    return CODE\n"
    cli += "\ndef register_cli(subparser):\n    pass\n"
    assert [run(spec(tmp_path / str(code), cli, texts=f"CODE = {code}\n")) for code in (1, 2, 1)] == [1, 2, 1]


@pytest.mark.parametrize(
    ("cli", "there"),
    [
        ("def register_cli(subparser): pass", True),
        ("from .tree import register_cli", True),
        (
            "try:\n    from .x import register as register_cli\nexcept ImportError:\n    register_cli = None\n",
            True,
        ),
        ("def register_cli(subparser) pass", True),  # running it says what is wrong
        ("def main(): pass", False),
        ("class Tool:\n    def register_cli(self): pass", False),
        ("# register_cli", False),
    ],
)
def test_whether_there_is_a_tree_is_told_without_running_it(tmp_path: Path, cli: str, there: bool) -> None:
    """A cli.py that defines register_cli has a tree; an installer's own cli.py has none."""
    found = spec(tmp_path, f"{cli}\n")
    assert (tree.file_of(found) is not None) is there
    assert tree.file_of({**found, "path": None}) is None
    assert not Path(found["path"], "imported").exists()
