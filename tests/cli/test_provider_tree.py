"""``hermes <provider> …``: whose tree it is, where it runs, and what stays ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.cli import app
from hermes.cli.provider_tree import ProviderTree, without_target
from hermes.cli.state import State
from hermes.errors import UsageError
from hermes.plugin_host import Plugin
from tests.plugin_host.building import plugin, provider
from tests.support import hermes
from tests.terminal import Terminal

INIT = f"{provider()}\nfrom pathlib import Path\nPath(__file__).with_name('imported').touch()\n"
CLI = """\
import os, sys, time


def notes_command(args):
    if args.command == "where":
        print(os.environ["HERMES_PROFILE"], os.environ["HERMES_HOME"], os.environ.get("OF_DOTENV"))
        print("target", args.target_profile)
    elif args.command == "home":
        print(os.path.expanduser("~"))
    elif args.command == "echo":
        print(args.words)
    elif args.command == "config":
        from hermes_cli.config import load_config
        print(load_config()["memory"]["notes"])
    elif args.command == "ask":
        print("you said", input("say: "))
    elif args.command == "wait":
        print("waiting", flush=True)
        time.sleep(60)
    elif args.command == "fail":
        raise RuntimeError("no backend")
    return args.code


def register_cli(subparser):
    subparser.set_defaults(target_profile=None)
    subparser.add_argument("--code", type=int, default=0)
    commands = subparser.add_subparsers(dest="command")
    for name in ("config", "home", "ask", "wait", "fail"):
        commands.add_parser(name)
    commands.add_parser("where", help="Which profile").add_argument("--target-profile")
    commands.add_parser("echo").add_argument("words", nargs="*")
"""


class Done(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def root(home: Path) -> Path:
    """A root whose provider ``notes`` is in use in ``work`` and installed for all."""
    plugin(home / "plugins" / "notes", INIT, "name: notes\ndescription: Keeps notes.\n", cli=CLI)
    work = home / "profiles" / "work"
    work.mkdir(parents=True)
    (work / "config.yaml").write_text("memory:\n  provider: notes\n  notes:\n    depth: 3\n")
    (work / ".env").write_text("OF_DOTENV=work\n")
    return home


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs ``hermes`` here."""

    def command(*words: str) -> Done:
        monkeypatch.setenv("HERMES_HOME", str(root))
        capfd.readouterr()
        return Done(app.run(words), *capfd.readouterr())

    return command


def test_the_tree_of_the_provider_in_use(run: Run, root: Path) -> None:
    """It runs with the profile's environment, reads its settings through its host, and its code is ours."""
    work = root / "profiles" / "work"
    assert run("-p", "work", "notes", "--code", "7", "where") == Done(
        7, f"work {work} work\ntarget None\n", ""
    )
    assert run("-p", "work", "notes", "config").out == "{'depth': 3}\n"
    assert run("-p", "work", "notes", "echo", "--", "--x", "--target-profile", "y").out == (
        "['--x', '--target-profile', 'y']\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--target-profile", "work", "notes", "where"],
        ["notes", "--target-profile", "work", "where"],
        ["notes", "where", "--target-profile=work"],
    ],
)
def test_the_target_profile_is_the_host_s(run: Run, root: Path, words: list[str]) -> None:
    """Wherever it stands, only the target is opened, its tree runs, and the plugin's own option sees None."""
    (root / "config.yaml").write_text("memory: [broken\n")
    before = sorted(root.iterdir())
    done = run(*words)
    assert done == Done(0, f"work {root / 'profiles' / 'work'} work\ntarget None\n", "")
    assert sorted(root.iterdir()) == before


def test_a_private_home_is_private_to_a_tree_too(run: Run, root: Path) -> None:
    """With plugins.private_home a tree takes the same folder for the person's home as the provider does."""
    private = root / "profiles" / "work" / "plugin-homes" / "notes"
    assert run("-p", "work", "--set", "plugins.private_home=true", "notes", "home").out == f"{private}\n"
    assert run("-p", "work", "notes", "home").out == f"{Path.home()}\n"


def test_an_unknown_target(run: Run, root: Path) -> None:
    """A target that does not exist: exit 3, and nothing of the plugin was run."""
    done = run("notes", "--target-profile", "nosuch", "where")
    assert (done.code, done.out) == (3, "")
    assert "no profile 'nosuch'" in done.err
    assert not (root / "plugins" / "notes" / "__pycache__").exists()


@pytest.mark.parametrize(
    ("words", "rest", "target"),
    [
        (["a", "--target-profile", "w", "b"], ["a", "b"], "w"),
        (["--target-profile=w"], [], "w"),
        (["a", "--", "--target-profile", "w"], ["a", "--", "--target-profile", "w"], None),
        (["--target-prof", "w", "--target-profile-x"], ["--target-prof", "w", "--target-profile-x"], None),
        ([], [], None),
    ],
)
def test_what_is_taken_out_of_a_tree_s_words(words: list[str], rest: list[str], target: str | None) -> None:
    """The option by its full name, up to two dashes; everything else is the plugin's."""
    assert without_target(words) == (rest, target)


@pytest.mark.parametrize(
    "words",
    [
        ["--target-profile"],
        ["--target-profile="],
        ["--target-profile", "--json"],
        ["--target-profile", "a", "--target-profile=b"],
    ],
)
def test_a_target_without_a_name_or_twice(words: list[str]) -> None:
    """No name, or two: which profile is meant is never guessed."""
    with pytest.raises(UsageError):
        without_target(words)


def test_a_provider_that_is_not_in_use(run: Run, root: Path) -> None:
    """Exit 4 with the command that was meant; that command works and changes nothing on disk."""
    done = run("notes", "echo", "a b")
    assert (done.code, done.out) == (4, "")
    assert "'notes' is not the memory provider in use, 'local' is" in done.err
    hint = "hermes --set memory.provider=notes notes echo 'a b'"
    assert f"({hint})" in done.err
    before = sorted(path.name for path in root.iterdir())
    assert run("--set", "memory.provider=notes", "notes", "echo", "a b") == Done(0, "['a b']\n", "")
    assert sorted(path.name for path in root.iterdir()) == before
    other = run("--set", "memory.provider=local", "notes", "--target-profile", "work", "where")
    assert "hermes --target-profile work --set memory.provider=notes notes where" in other.err


def test_help_does_not_import_the_provider(run: Run, root: Path) -> None:
    """The tree's help and completion are there without the package being imported."""
    done = run("-p", "work", "notes", "--help")
    assert done.code == 0
    assert "usage: hermes notes" in done.out
    assert "Which profile" in done.out
    assert not (root / "plugins" / "notes" / "imported").exists()


def test_our_help_lists_the_tree_of_the_provider_in_use(run: Run) -> None:
    """hermes --help has the word with the plugin's description where it is in use, and nowhere else."""
    assert "notes     Keeps notes." in run("-p", "work", "--help").out
    assert "Keeps notes." not in run("--help").out
    assert "Keeps notes." in run("--set", "memory.provider=notes", "--help").out


def test_completion(root: Path) -> None:
    """The word is completed where the provider is in use, and its commands and options behind it."""

    def offered(typed: str) -> list[str]:
        words = typed.split(" ")
        env = {"_HERMES_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
        return hermes(home=root, env=env).stdout.split()

    assert offered("hermes -p work no") == ["notes"]
    assert offered("hermes no") == []
    assert offered("hermes -p work notes wh") == ["where"]
    assert offered("hermes notes --target-profile work where --") == ["--help", "--target-profile"]
    assert not (root / "plugins" / "notes" / "imported").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["memoy"], 2, "Did you mean 'memory'?"),
        (["-p", "nosuch", "memoy"], 2, "Did you mean 'memory'?"),
        (["-p", "nosuch", "whatever"], 3, "no profile 'nosuch'"),
        (["whatever"], 2, "No such command 'whatever'"),
        (["../notes"], 2, "No such command"),
        (["--set", "memory.provider=plain", "plain"], 2, "has no commands of its own"),
        (["-p", "work", "notes", "nosuch"], 2, "invalid choice: 'nosuch'"),
        (["-p", "work", "notes", "fail"], 1, "no backend"),
        (["-p", "work", "--set", "plugins.disabled=notes", "notes", "where"], 4, "plugins.disabled"),
    ],
)
def test_words_that_lead_nowhere(run: Run, root: Path, words: list[str], code: int, says: str) -> None:
    """A slip of our own words keeps its hint, whatever the profile; a plugin's failure is one line."""
    plugin(root / "plugins" / "plain", provider(), "name: plain\n", cli="def main(): pass\n")
    done = run(*words)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err


def test_our_own_words_win(run: Run, root: Path) -> None:
    """A provider that is called like a command of ours never takes its place."""
    plugin(root / "plugins" / "config", INIT, "name: config\n", cli=CLI)
    done = run("--set", "memory.provider=config", "config", "path")
    assert done == Done(0, f"{root / 'config.yaml'}\n", "")


def test_a_broken_tree_is_one_line(run: Run, root: Path) -> None:
    """A cli.py that cannot be imported is told with its error."""
    (root / "plugins" / "notes" / "cli.py").write_text("def register_cli(subparser) oops\n")
    done = run("-p", "work", "notes", "where")
    assert done.code == 1
    assert "SyntaxError" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.fixture
def bundled(root: Path) -> Iterator[ProviderTree]:
    """The tree as if the provider came with hermes, in the profile ``work``."""
    found = Plugin("notes", "memory", "bundled", path=root / "plugins" / "notes")
    yield ProviderTree(State(profile="work", home=root), found)
    assert "OF_DOTENV" not in os.environ


def test_the_tree_of_a_bundled_provider_runs_here(
    bundled: ProviderTree, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, with the environment that a plugin of the profile finds, taken off again after."""
    assert bundled.main(args=["--code", "3", "where"], prog_name="notes", standalone_mode=False) == 3
    work = root / "profiles" / "work"
    assert capsys.readouterr().out == f"work {work} work\ntarget None\n"


def test_a_tree_has_the_terminal(root: Path) -> None:
    """It can ask the person, and Ctrl-C ends it with 130 and without a traceback."""
    with Terminal("-p", "work", "notes", "ask", home=root) as person:
        person.expect("say: ")
        person.send("hello\r")
        person.expect("you said hello")
        assert person.wait() == 0
    with Terminal("-p", "work", "notes", "wait", home=root) as person:
        person.expect("waiting")
        person.send("\x03")
        assert person.wait() == 130
        assert "Traceback" not in person.screen
