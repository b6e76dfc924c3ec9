"""``hermes memory setup``, with and without somebody at a terminal."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from hermes import dotenv
from hermes.cli import app
from tests.plugin_host.building import plugin
from tests.support import hermes
from tests.terminal import Terminal

GUIDE = Path(__file__).parent.parent / "fixtures" / "my-provider"
ENTER, DOWN, LEFT, INTERRUPT, END = "\r", "\x1b[B", "\x1b[D", "\x03", "\x04"
ELSEWHERE = "import os, sys; os.dup2(os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT), 1)"
APART = ("-c", f"{ELSEWHERE}; import hermes.cli; hermes.cli.main()")
"""Runs the command with its standard output in a file."""

NOTES = """\
import json, os, sys
from pathlib import Path

from agent.memory_provider import MemoryProvider


class Notes(MemoryProvider):
    name = "notes"

    def is_available(self):
        return bool(os.environ.get("NOTES_KEY"))

    def unavailable_reason(self):
        return "NOTES_KEY is not set"

    def initialize(self, session_id, **kwargs):
        pass

    def get_tool_schemas(self):
        return []

    def get_config_schema(self):
        return [
            {"key": "key", "description": "The key", "secret": True},
            {"key": "folder", "description": "Where", "required": True},
            {"key": "auto", "default": False},
            {"key": "depth", "default": 0, "minimum": 0, "maximum": 10},
            {"key": "trust", "type": "number", "default": 0.5},
        ]
"""
REGISTER = "\n\ndef register(ctx):\n    ctx.register_memory_provider(Notes())\n"
SAVES = """
    def save_config(self, values, hermes_home):
        (Path(hermes_home) / "notes.json").write_text(json.dumps(values))
"""
Install = Callable[..., Path]
Run = Callable[..., "Done"]


class Done(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs ``hermes memory setup`` here, with nobody at a terminal."""

    def setup(*words: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Done:
        monkeypatch.setenv("HERMES_HOME", str(home))
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        capfd.readouterr()
        code = app.run(["memory", "setup", *words])
        return Done(code, *capfd.readouterr())

    return setup


@pytest.fixture
def install(home: Path) -> Install:
    """Puts the provider ``notes`` into *home*, with more members and a longer manifest where a test wants it."""

    def put(more: str = "", manifest: str = "", source: str = NOTES) -> Path:
        plugin(home / "plugins" / "notes", f"{source}{more}{REGISTER}", f"name: notes\n{manifest}")
        return home

    return put


@pytest.fixture
def guided(home: Path) -> Path:
    """A home with the provider of the guide."""
    shutil.copytree(GUIDE, home / "plugins" / "my-provider")
    return home


def settings(home: Path) -> str:
    """Everything that a setup could have written: names and contents of the files in *home*."""
    files = [path for path in home.iterdir() if path.is_file() and path.suffix != ".lock"]
    return "\n".join(f"{path.name}: {path.read_text()}" for path in sorted(files))


# -- without a terminal ----------------------------------------------------------------------------------


def test_nobody_there_and_something_missing(run: Run, install: Install) -> None:
    """Without a terminal each missing field is named with its option; exit 2, and nothing is written."""
    home = install("\n    def post_setup(self, hermes_home, config):\n        input('never asked')\n")
    done = run("notes", "--field", "depth=11", "--json")
    error = json.loads(done.stderr)["error"]
    assert done.returncode == error["exit_code"] == 2
    assert (error["missing"], error["refused"]) == (["--field folder=VALUE"], ["depth"])
    assert settings(home) == ""


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "which memory provider"),
        (["nosuch"], 3, "installed: local, notes"),
        (["../notes"], 3, "no memory provider"),
        (["builtin"], 2, "hermes memory off"),
        (["notes", "--field", "folder=x", "--field", "foldr=y"], 2, "did you mean 'folder'"),
        (["notes", "--field", "key=sk-1234"], 2, "--secret key=@FILE"),
        (["notes", "--secret", "key=sk-1234"], 2, "others can read it"),
    ],
)
def test_requests_that_cannot_be_met(
    run: Run, install: Install, words: list[str], code: int, says: str
) -> None:
    """A provider or a field that is not there, a secret in the command: one line, no value, nothing written."""
    home = install()
    done = run(*words, "--no-input")
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "sk-1234" not in done.stderr
    assert settings(home) == ""


def test_answers_are_typed_and_go_where_they_belong(run: Run, install: Install) -> None:
    """A provider with a schema and nothing else: secrets to .env, the rest typed below memory.<name>."""
    home = install()
    config = home / "config.yaml"
    config.write_text(
        "# mine\nmemory:   # all of it\n  provider: local\n  nudge_interval: 3  # often\nother: [1]\n"
    )
    words = ["--field", "folder=/data/x", "--field", "auto=yes", "--secret", "key=-"]
    done = run("notes", *words, stdin=" a #b\"c'\n")
    assert done.returncode == 0, done.stderr
    assert dotenv.read(home / ".env") == {"NOTES_KEY": " a #b\"c'"}
    data = yaml.safe_load(config.read_text())
    assert data["memory"]["notes"] == {"folder": "/data/x", "auto": True, "depth": 0, "trust": 0.5}
    assert data["memory"]["provider"] == "notes"
    kept = ["# mine", "memory:   # all of it", "  nudge_interval: 3  # often", "other: [1]"]
    assert [line for line in config.read_text().splitlines() if line in kept] == kept
    for place in (f"NOTES_KEY in {home / '.env'}", f"memory.notes.folder in {config}", "notes: ready"):
        assert place in done.stdout
    status = json.loads(hermes("memory", "status", "--json", home=home).stdout)
    assert (status["provider"]["name"], status["provider"]["state"]) == ("notes", "ready")


def test_a_provider_that_keeps_its_answers_itself(run: Run, guided: Path) -> None:
    """The provider of the guide: the key in .env, the rest in its own file; --json says so, without values."""
    env = {"THE_KEY": "sk-0123456789"}
    words = ["--secret", "api_key=env:THE_KEY", "--field", "region=eu-west"]
    done = run("my-provider", *words, "--json", env=env)
    said = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "sk-0123456789" not in done.stdout
    assert {one["field"]: (one["name"], one["where"]) for one in said.pop("saved")} == {
        "api_key": ("MY_API_KEY", str(guided / ".env")),
        "region": ("region", str(guided / "my-provider.json")),
        "project": ("project", str(guided / "my-provider.json")),
    }
    assert said == {
        "profile": "default",
        "provider": "my-provider",
        "missing": [],
        "state": "ready",
        "reason": "",
        "active": True,
        "active_provider": "my-provider",
    }
    assert json.loads((guided / "my-provider.json").read_text()) == {"region": "eu-west", "project": "hermes"}
    again = run("my-provider", "--field", "project=two")
    assert again.returncode == 0, again.stderr
    assert json.loads((guided / "my-provider.json").read_text()) == {"region": "eu-west", "project": "two"}


def test_a_provider_that_cannot_be_used_is_not_put_to_use(run: Run, install: Install) -> None:
    """Answers are kept, the provider of before stays, the reason and the way on are said; exit 4."""
    home = install()
    (home / "config.yaml").write_text("memory:\n  provider: local\n")
    done = run("notes", "--field", "folder=x")
    assert done.returncode == 4
    assert "NOTES_KEY is not set" in done.stdout
    assert "the memory provider of 'default' is local" in done.stdout
    data = yaml.safe_load((home / "config.yaml").read_text())
    assert (data["memory"]["provider"], data["memory"]["notes"]["folder"]) == ("local", "x")


def test_settings_that_cannot_be_edited_leave_no_secret_behind(run: Run, install: Install) -> None:
    """Where config.yaml cannot be changed, the .env that was written before is taken back."""
    home = install(SAVES)
    (home / "config.yaml").write_text("memory: {provider: local}\n")
    before = settings(home)
    words = ["--field", "folder=x", "--secret", "key=env:K"]
    done = run("notes", *words, env={"K": "secret"})
    assert (done.returncode, done.stdout) == (78, "")
    assert settings(home) == before


def test_a_provider_that_fails_while_it_saves(run: Run, install: Install) -> None:
    """What its save_config raises is its mistake, told in one line, and nothing stays written."""
    home = install("\n    def save_config(self, values, hermes_home):\n        values['nobody']\n")
    words = ["--field", "folder=x", "--secret", "key=env:K"]
    done = run("notes", *words, env={"K": "secret"})
    assert done.returncode == 4
    assert "its save_config failed" in done.stderr
    assert "KeyError" in done.stderr
    assert settings(home) == ""


def test_a_damaged_file_of_the_provider_is_never_written_over(run: Run, guided: Path) -> None:
    """A file that is no JSON any more may hold what the person needs: it stays as it is, and is named."""
    (guided / "my-provider.json").write_text('{"region": "eu-west", ')
    before = settings(guided)
    done = run("my-provider", "--secret", "api_key=-", stdin="k")
    assert done.returncode == 4
    assert "my-provider.json" in done.stderr
    assert settings(guided) == before


def test_a_provider_that_does_not_load(run: Run, home: Path) -> None:
    """Its own mistake is told with file and line; nothing is written."""
    plugin(home / "plugins" / "broken", "MemoryProvider = None\nimport nobody_has_this\n", "name: broken\n")
    done = run("broken")
    assert done.returncode == 4
    assert "nobody_has_this" in done.stderr
    assert "__init__.py:2" in done.stderr
    assert settings(home) == ""


def test_a_provider_whose_packages_are_missing(run: Run, install: Install) -> None:
    """Where it does not load for want of them, the way on is the command that installs them."""
    home = install(manifest=MANIFEST, source=f"import nobody_has_this\n{NOTES}")
    done = run("notes")
    assert done.returncode == 4
    assert "No module named 'nobody_has_this'" in done.stderr
    assert "nobody-has-this>=2: it is not installed (" in done.stderr
    assert "install" in done.stderr
    assert settings(home) == ""


def test_nothing_is_installed_unasked(run: Run, install: Install, tmp_path: Path) -> None:
    """Without a person, what is missing is named with the command for it; the installer is not run."""
    install(manifest=MANIFEST)
    path = recorder(tmp_path / "bin")
    env = {"K": "secret", "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    words = ["--field", "folder=x", "--secret", "key=env:K", "--json"]
    done = run("notes", *words, env=env)
    missing = json.loads(done.stdout)["missing"]
    assert done.returncode == 0, done.stderr
    assert missing[0].startswith("nobody-has-this>=2: it is not installed (")
    assert missing[0].endswith("nobody-has-this>=2')")
    assert missing[1] == "some-daemon: it is not there (touch it)"
    assert not path.exists()


def test_a_home_that_cannot_be_written(run: Run, install: Install) -> None:
    """One line says which file cannot be written; exit 4, no traceback."""
    home = install()
    home.chmod(0o500)
    try:
        words = ["--field", "folder=x", "--no-input"]
        done = hermes("memory", "setup", "notes", *words, home=home, powerless=True)
    finally:
        home.chmod(0o700)
    assert done.returncode == 4
    assert str(home) in done.stderr
    assert "Traceback" not in done.stderr
    assert settings(home) == ""


# -- at a terminal ---------------------------------------------------------------------------------------


def test_the_wizard(guided: Path, tmp_path: Path) -> None:
    """Picker, hidden secret, choice, text: each typed and saved; what was pasted around a secret is filtered."""
    out = tmp_path / "out"
    with Terminal(str(out), "memory", "setup", home=guided, program=APART) as person:
        person.expect("my-provider")
        person.send(DOWN + ENTER)
        person.expect("https://my-provider.com/keys")
        person.expect("My Provider API key")
        person.send(f"\x1b[200~sk-abcd{LEFT}efgh12345\x1b[201~{LEFT}{LEFT}{ENTER}")
        person.expect("us-east")
        person.send(DOWN + ENTER)
        person.expect("Project identifier [hermes]")
        person.send(ENTER)
        assert person.wait() == 0, person.screen
        assert "sk-abcd" not in person.screen
    assert dotenv.read(guided / ".env") == {"MY_API_KEY": "sk-abcdefgh12345"}
    assert json.loads((guided / "my-provider.json").read_text()) == {"region": "eu-west", "project": "hermes"}
    assert "provider: my-provider" in (guided / "config.yaml").read_text()
    assert "my-provider: ready" in out.read_text()


def test_a_second_time_shows_what_is_stored(guided: Path) -> None:
    """A re-run shows the stored values, of a secret the last four characters; Enter keeps each."""
    dotenv.set_values(guided / ".env", {"MY_API_KEY": "sk-abcdefgh12345"})
    (guided / "my-provider.json").write_text('{"region": "ap-south", "project": "mine"}')
    before = json.loads((guided / "my-provider.json").read_text())
    with Terminal("memory", "setup", "my-provider", home=guided) as person:
        person.expect("My Provider API key [****2345]")
        person.send(ENTER)
        person.expect("» ap-south")
        person.send(ENTER)
        person.expect("Project identifier [mine]")
        person.send(ENTER)
        assert person.wait() == 0, person.screen
    assert json.loads((guided / "my-provider.json").read_text()) == before
    assert dotenv.read(guided / ".env") == {"MY_API_KEY": "sk-abcdefgh12345"}


def test_an_answer_that_is_not_taken_is_asked_again(install: Install) -> None:
    """An empty answer to a required field and a number out of bounds: the reason, and the question once more."""
    home = install()
    with Terminal("memory", "setup", "notes", home=home) as person:
        for question, keys in (
            ("The key [leave it out]", "k-1" + ENTER),
            ("folder: Where", ENTER),
            ("an answer is needed", "/data" + ENTER),
            ("auto (y/N)", "y"),
            ("depth [0]", "11" + ENTER),
            ("10 or less", "4" + ENTER),
            ("trust [0.5]", ENTER),
        ):
            person.expect(question)
            person.send(keys)
        assert person.wait() == 0, person.screen
    data = yaml.safe_load((home / "config.yaml").read_text())["memory"]["notes"]
    assert data == {"folder": "/data", "auto": True, "depth": 4, "trust": 0.5}


@pytest.mark.parametrize("question", ["Memory provider", "API key", "Server region", "Project identifier"])
def test_ctrl_c_at_any_question(guided: Path, question: str) -> None:
    """Interrupted at the picker, a secret, a choice or a text: exit 130, nothing saved, no traceback."""
    before = settings(guided)
    with Terminal("memory", "setup", home=guided) as person:
        for shown, keys in (
            ("Memory provider", DOWN + ENTER),
            ("API key", "sk-1234" + ENTER),
            ("Server region", ENTER),
            ("Project identifier", ENTER),
        ):
            person.expect(shown)
            if shown == question:
                break
            person.send(keys)
        person.send(INTERRUPT)
        assert person.wait() == 130
        assert "nothing saved" in person.screen
        assert "Traceback" not in person.screen
    assert settings(guided) == before


def test_ctrl_c_while_the_provider_is_tried(install: Install) -> None:
    """Interrupted after the answers were written, before the provider is put to use: all is taken back."""
    slow = """
    def initialize_for_inspection(self, session_id, **kwargs):
        (Path(kwargs["hermes_home"]) / "tried").touch()
        import time
        time.sleep(60)
"""
    home = install(SAVES + slow)
    (home / "config.yaml").write_text("memory:\n  timeouts:\n    shutdown: 0.5\n")
    before = settings(home)
    with Terminal("memory", "setup", "notes", "--field", "folder=x", home=home) as person:
        person.expect("The key")
        person.send("k" + ENTER)
        person.expect("auto")
        person.send("n")
        person.expect("depth")
        person.send(ENTER)
        person.expect("trust")
        person.send(ENTER)
        while not (home / "tried").exists():
            person.process.poll()
        assert (home / "notes.json").exists()
        person.send(INTERRUPT)
        assert person.wait() == 130
        assert "nothing saved" in person.screen
    (home / "tried").unlink()
    assert settings(home) == before


def test_the_end_of_the_input(guided: Path) -> None:
    """Ctrl-D at a question ends the setup with nothing saved, and not with success."""
    with Terminal("memory", "setup", "my-provider", home=guided) as person:
        person.expect("API key")
        person.send(END)
        assert person.wait() == 1
        assert "nothing saved" in person.screen
    assert settings(guided) == ""


OWN_SETUP = """
    def post_setup(self, hermes_home, config):
        from hermes_cli.config import save_config, save_env_value
        key = input("own key: ")
        save_env_value("NOTES_KEY", key)
        config.setdefault("memory", {})["notes"] = {"folder": "y", "was": config["memory"].get("provider")}
        save_config(config)
        (Path(hermes_home) / "notes.json").write_text("{}")
        if input("sure? ") == "no":
            sys.exit(3)
"""


@pytest.mark.parametrize(("keys", "code"), [("yes\r", 0), ("no\r", 4), (INTERRUPT, 130)])
def test_a_setup_of_its_own(install: Install, keys: str, code: int) -> None:
    """post_setup has the terminal and writes through its host; where it fails or is stopped, nothing stays."""
    home = install(OWN_SETUP)
    (home / "config.yaml").write_text("memory:\n  provider: local  # mine\n")
    before = settings(home)
    with Terminal("memory", "setup", "notes", home=home) as person:
        person.expect("own key: ")
        person.send("k-1\r")
        person.expect("sure? ")
        person.send(keys)
        assert person.wait() == code, person.screen
        assert "Traceback" not in person.screen
    if code:
        assert settings(home) == before
    else:
        assert dotenv.read(home / ".env") == {"NOTES_KEY": "k-1"}
        text = (home / "config.yaml").read_text()
        assert yaml.safe_load(text)["memory"]["notes"] == {"folder": "y", "was": "notes"}
        assert "  provider: notes  # mine\n" in text


MANIFEST = """\
pip_dependencies: ["nobody-has-this>=2", "attrs>=20"]
external_dependencies:
  - {name: some-daemon, install: touch it}
"""


def recorder(folder: Path) -> Path:
    """A ``uv`` in *folder* that installs nothing; the file where it writes down what it was asked."""
    folder.mkdir()
    asked = folder / "asked"
    (folder / "uv").write_text(f'#!/bin/sh\necho "$@" >> {asked}\necho working\nexit 1\n')
    (folder / "uv").chmod(0o755)
    return asked


@pytest.mark.parametrize("agreed", [True, False])
def test_dependencies_are_offered(install: Install, tmp_path: Path, agreed: bool) -> None:
    """The command is shown and run on a yes alone; where it fails, it is said for the person and nothing saved."""
    home = install(manifest=MANIFEST)
    asked = recorder(tmp_path / "bin")
    env = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    with Terminal("memory", "setup", "notes", home=home, env=env, columns=300) as person:
        person.expect("notes needs nobody-has-this>=2: it is not installed")
        person.expect("Install it now?")
        person.send("y" if agreed else "n")
        if agreed:
            person.expect("working")
            assert person.wait() == 4
            assert "could not be installed, nothing saved" in person.screen
            assert asked.read_text().startswith("pip install --python ")
            assert asked.read_text().endswith(" nobody-has-this>=2\n")
        else:
            person.expect("some-daemon, which is not there. Run this? touch it")
            person.send(ENTER)
            person.expect("The key")
            person.send(INTERRUPT)
            assert person.wait() == 130
            assert not asked.exists()
    assert settings(home) == ""
