"""``hermes plugins new`` and ``hermes plugins check``, as an author runs them."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.plugin_host import scaffold
from tests.support import hermes, python

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]

WRITTEN = [
    "README.md",
    "__init__.py",
    "cli.py",
    "plugin.yaml",
    "store.py",
    "tests/test_my_notes.py",
]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command line in a folder of its own."""

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return hermes(*args, home=tmp_path / "home", cwd=tmp_path)

    return run


def test_what_new_writes_passes_its_own_tests_and_the_checks(run: Run, tmp_path: Path) -> None:
    """The files are listed, ``check`` finds nothing and tries everything, and pytest passes in the folder."""
    done = run("plugins", "new", "my-notes", "--json")
    assert json.loads(done.stdout)["files"] == [f"my-notes/{name}" for name in WRITTEN]
    done = run("plugins", "check", "./my-notes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nmy-notes: 18 checks, nothing to mend\n")
    tests = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", cwd=tmp_path / "my-notes")
    assert "2 passed" in tests.stdout, tests.stdout


def test_the_name_stands_everywhere(run: Run, tmp_path: Path) -> None:
    """Nothing of the provider that it was made from is left in the texts or the names of files."""
    assert run("plugins", "new", "sea_chest").returncode == 0
    folder = tmp_path / "sea_chest"
    assert (folder / "tests" / "test_sea_chest.py").is_file()
    assert "class SeaChest(MemoryProvider)" in (folder / "__init__.py").read_text()
    for path in folder.rglob("*.*"):
        assert "notes" not in path.read_text().lower(), path


def test_what_new_writes_is_in_the_wheel() -> None:
    """Its templates are declared as data of their package, and each of them is used."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["hermes.plugin_host.template"] == ["*.txt"]
    folder = Path(scaffold.__file__).parent / "template"
    assert sorted(path.name for path in folder.glob("*.txt")) == sorted(scaffold.FILES.values())


def test_what_new_writes_is_tidy(tmp_path: Path) -> None:
    """Ruff has nothing to say about its form or its content."""
    scaffold.write("my-notes", tmp_path)
    for words in (["check", "--select", "E,F,I,UP,B,SIM,RUF"], ["format", "--check"]):
        options = ["--line-length", "110", "--no-cache", "--isolated", "--target-version", "py311"]
        done = python("-m", "ruff", *words, *options, ".", cwd=tmp_path)
        assert done.returncode == 0, done.stdout


def test_a_name_may_hold_the_name_that_it_replaces(tmp_path: Path) -> None:
    """Each place is renamed once."""
    scaffold.write("my_notes_too", tmp_path)
    assert "name: my_notes_too\n" in (tmp_path / "my_notes_too" / "plugin.yaml").read_text()
    assert '"name": "my_notes_too_search"' in (tmp_path / "my_notes_too" / "__init__.py").read_text()
    assert "class MyNotesToo(" in (tmp_path / "my_notes_too" / "__init__.py").read_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("My Notes", "did you mean 'my-notes'?"),
        ("../up", "did you mean 'up'?"),
        ("1", "for example: my-notes"),
        ("x" * 41, "40 at most"),
        ("local", "is taken"),
        ("doctor", "is taken"),
        ("builtin", "means the built-in memory"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(run: Run, tmp_path: Path, name: str, said: str) -> None:
    """One line that says why, exit code 2, and nothing is written."""
    done = run("plugins", "new", name)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "broken link"])
def test_nothing_is_written_over(run: Run, tmp_path: Path, kind: str) -> None:
    """What is there stays as it is, whatever it is."""
    place = tmp_path / "my-notes"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to("nowhere")
    done = run("plugins", "new", "my-notes")
    assert done.returncode == 2
    assert "is there already" in done.stderr
    assert list(tmp_path.iterdir()) == [place]


def test_a_folder_that_cannot_be_written_is_said_to_be_so(tmp_path: Path) -> None:
    """One line with what to do."""
    tmp_path.chmod(0o555)
    done = hermes("plugins", "new", "my-notes", home=tmp_path / "home", cwd=tmp_path, powerless=True)
    tmp_path.chmod(0o755)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "folder of your own" in done.stderr


def test_check_says_what_where_why_and_how(run: Run, tmp_path: Path) -> None:
    """Exit code 1, each finding with its line; with ``--json`` the same as data, with whole paths."""
    file = broken(tmp_path)
    done = run("plugins", "check", "broken")
    assert done.returncode == 1
    shown = done.stdout.splitlines()
    assert shown[0] == "error      loads: it loads, and registers one memory provider"
    assert shown[1].strip() == "__init__.py:2: error: it does not load: ZeroDivisionError: division by zero"
    assert shown[2].strip().startswith("why: A plugin that does not load is no memory")
    assert shown[3].strip().startswith("mend: mend the line that is named")
    assert shown[5].strip() == "not tried to its end: it does not load"
    assert shown[-1] == "broken: 18 checks, 1 error, 17 not tried"
    data = json.loads(run("plugins", "check", "broken", "--json").stdout)
    assert (data["plugin"], data["errors"], data["warnings"]) == ("broken", 1, 0)
    [loads] = [check for check in data["checks"] if check["verdict"] == "error"]
    assert (loads["findings"][0]["file"], loads["findings"][0]["line"]) == (str(file), 2)


def test_check_takes_the_name_of_an_installed_plugin(run: Run, tmp_path: Path) -> None:
    """What cannot be checked is said to be that, on one line."""
    broken(tmp_path / "home" / "plugins")
    done = run("plugins", "check", "broken", "-q")
    assert done.returncode == 1
    assert "__init__.py:2: error: it does not load" in done.stdout
    for word, code, said in (
        ("nothing", 3, "there is no plugin 'nothing'"),
        ("./nothing", 3, "there is no plugin in nothing"),
        ("compressor", 2, "compressor is a context engine"),
    ):
        done = run("plugins", "check", word)
        assert done.returncode == code
        assert said in done.stderr
    assert "is no KEY=VALUE" in run("plugins", "check", "local", "--field", "url").stderr


def broken(folder: Path) -> Path:
    """A provider in *folder* that does not load; the file with the mistake."""
    file = folder / "broken" / "__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text("def register(ctx):\n    ctx.register_memory_provider(1 / 0)\n")
    return file
