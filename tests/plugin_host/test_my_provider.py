"""The provider that the guide spells out, in every place where a provider can lie and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hermes.containers import Hermes
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.loading import load
from hermes.testing.conformance import plugin_in
from tests.support import hermes

MY_PROVIDER = Path(__file__).parents[1] / "fixtures" / "my-provider"
SETTINGS = "memory:\n  provider: my-provider\n"
QUESTION = "When does the ferry leave?"


def chosen(home: Path, settings: str = SETTINGS) -> Path:
    """The profile in *home*, set up for the provider."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(settings)
    (home / ".env").write_text("MY_API_KEY=made-up-key-1\n")
    return home


def converse(root: Hermes, profile: str | None = None) -> str:
    """A session that tells something and uses the tool; what a later session is told about it."""
    with root.open(profile) as me:
        memory = me.memory_manager()
        memory.initialize_all("first", platform="cli")
        memory.sync_all(QUESTION, "The ferry leaves at ten.")
        answer = memory.handle_tool_call("my_tool", {"action": "add", "content": "The ferry is blue."})
        assert json.loads(answer) == {"added": "The ferry is blue."}
        memory.on_session_end([])
    with root.open(profile) as me:
        memory = me.memory_manager()
        memory.initialize_all("second", platform="cli")
        recalled: str = memory.prefetch_all(QUESTION)
        return recalled


@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize("place", ["plugins", "plugins/memory"])
def test_in_a_folder_of_the_profile(home: Path, place: str, isolation: str) -> None:
    """Beside other plugins or among memory providers, in a worker process and in this one."""
    chosen(home, f"{SETTINGS}plugins:\n  isolation: {isolation}\n")
    (home / place).mkdir(parents=True)
    (home / place / "my-provider").symlink_to(MY_PROVIDER)
    recalled = converse(Hermes(environ={}, home=home))
    assert "The ferry leaves at ten." in recalled
    assert "The ferry is blue." in recalled
    assert (home / "my-provider" / "turns.jsonl").is_file()


def test_in_the_folder_that_profiles_share(home: Path) -> None:
    """A profile finds what lies in the root, and keeps its turns in its own home."""
    work = chosen(home / "profiles" / "work")
    (home / "plugins").mkdir()
    shutil.copytree(MY_PROVIDER, home / "plugins" / "my-provider")
    assert "leaves at ten" in converse(Hermes(environ={}, home=home), "work")
    assert (work / "my-provider" / "turns.jsonl").is_file()
    assert not (home / "my-provider").exists()


def test_among_the_bundled_ones(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hermes_host_modules: object
) -> None:
    """In this process, as a plugin that comes with hermes is loaded."""
    import hermes.plugins
    import hermes.plugins.memory

    shutil.copytree(MY_PROVIDER, tmp_path / "bundled" / "memory" / "my-provider")
    monkeypatch.setattr(hermes.plugins, "__path__", [*hermes.plugins.__path__, str(tmp_path / "bundled")])
    places = [*hermes.plugins.memory.__path__, str(tmp_path / "bundled" / "memory")]
    monkeypatch.setattr(hermes.plugins.memory, "__path__", places)
    monkeypatch.setenv("MY_API_KEY", "made-up-key-1")
    chosen(home)
    with Hermes(environ={}, home=home).open() as me:
        plugin = me.plugins().find("my-provider")
        assert plugin.source == "bundled"
        memory = me.memory_manager()
        memory.initialize_all("first", platform="cli")
        memory.sync_all(QUESTION, "The ferry leaves at ten.")
        assert memory.flush_pending(10)
        assert json.loads(memory.handle_tool_call("my_tool", {"action": "add", "content": "x"})) == {
            "added": "x"
        }
    sys.modules.pop("hermes.plugins.memory.my-provider")


def test_as_an_installed_package(home: Path, tmp_path: Path) -> None:
    """An environment in which a distribution has the entry point: found by its name, run in a worker."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    [site] = environment.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (site / "ours.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in ours))
    shutil.copytree(MY_PROVIDER, site / "their_provider")
    info = site / "their_provider-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-provider\nVersion: 1.0.0\n")
    (info / "RECORD").write_text("their_provider/__init__.py,,\ntheir_provider/plugin.yaml,,\n")
    (info / "entry_points.txt").write_text(
        "[hermes_agent.memory_providers]\nmy-provider = their_provider:register\n"
    )
    code = f"""
        from hermes.containers import Hermes
        for session in ("first", "second"):
            with Hermes().open() as me:
                assert me.plugins().find("my-provider").source == "package"
                memory = me.memory_manager()
                memory.initialize_all(session, platform="cli")
                print(session, memory.prefetch_all({QUESTION!r}))
                memory.sync_all({QUESTION!r}, "The ferry leaves at ten.")
    """
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", textwrap.dedent(code)],
        env={"HERMES_HOME": str(chosen(home)), "PATH": os.environ["PATH"], "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.startswith("first \nsecond "), done.stderr
    assert "The ferry leaves at ten." in done.stdout


def test_the_sequence_of_the_guide(
    monkeypatch: pytest.MonkeyPatch, hermes_home: Path, hermes_host_modules: Any
) -> None:
    """A manager without arguments, the provider added, a tool routed, a turn, the end, as the guide has it."""
    from agent.memory_manager import MemoryManager

    monkeypatch.setenv("MY_API_KEY", "made-up-key-1")
    context = RegistrationContext("my-provider")
    load(plugin_in(MY_PROVIDER).spec(), context)
    mgr = MemoryManager()
    mgr.add_provider(context.registered.memory_provider)
    mgr.initialize_all(session_id="test-1", platform="cli")
    result = mgr.handle_tool_call("my_tool", {"action": "add", "content": "test"})
    assert json.loads(result) == {"added": "test"}
    mgr.sync_all("user msg", "assistant msg")
    mgr.on_session_end([])
    assert mgr.shutdown_all().clean
    lines = (hermes_home / "my-provider" / "turns.jsonl").read_text().splitlines()
    assert [json.loads(line)["user"] for line in lines] == ["test", "user msg"]


def test_its_commands(home: Path) -> None:
    """``hermes my-provider status``, ``config`` and neither, as the guide's ``cli.py`` answers."""
    chosen(home)
    (home / "plugins").mkdir()
    (home / "plugins" / "my-provider").symlink_to(MY_PROVIDER)
    said = {
        ("status",): "Provider is active and connected.\n",
        ("config",): "Showing config...\n",
        (): "Usage: hermes my-provider <status|config>\n",
    }
    for words, answer in said.items():
        done = hermes("my-provider", *words, home=home)
        assert (done.returncode, done.stdout) == (0, answer), done.stderr
    helped = hermes("my-provider", "--help", home=home)
    assert "Show provider status" in helped.stdout


def test_its_setup(home: Path) -> None:
    """The key goes to ``.env``, the rest to the provider's own file, the choice to the settings."""
    (home / "plugins").mkdir(parents=True)
    (home / "plugins" / "my-provider").symlink_to(MY_PROVIDER)
    words = ("--no-input", "--field", "region=eu-west", "--secret", "api_key=-")
    done = hermes("memory", "setup", "my-provider", *words, home=home, stdin="made-up-key-1\n")
    assert done.returncode == 0, done.stderr
    assert "made-up-key-1" in (home / ".env").read_text()
    assert json.loads((home / "my-provider.json").read_text()) == {"region": "eu-west", "project": "hermes"}
    assert "provider: my-provider" in (home / "config.yaml").read_text()
    assert "made-up-key-1" not in done.stdout + done.stderr
