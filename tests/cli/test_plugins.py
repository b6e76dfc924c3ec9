"""``hermes plugins`` alone, ``list`` and ``show``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_host.building import PLAIN_REGISTER, PROVIDER, package, plugin
from tests.support import hermes, python

SLEEPS = "import time\ntime.sleep(60)\n" + PROVIDER


def listed(
    home: Path, *words: str, env: dict[str, str] | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """What ``plugins list --json`` says, by kind and name."""
    done = hermes("plugins", "list", "--json", *words, home=home, env=env)
    assert done.returncode == 0, done.stderr
    return {(row["kind"], row["name"]): row for row in json.loads(done.stdout)["plugins"]}


@pytest.fixture
def full(home: Path) -> Path:
    """A home with a plugin of each sort."""
    plugins = home / "plugins"
    plugin(plugins / "notes", SLEEPS, "name: notes\nversion: 1.2.0\ndescription: Takes notes.\n")
    plugin(plugins / "memory" / "notes")
    plugin(plugins / "general", PLAIN_REGISTER)
    plugin(plugins / "odd", PROVIDER, "description: a: b\n")
    (plugins / "gone").symlink_to(home / "nowhere")
    (home / "config.yaml").write_text("memory: {provider: notes}\nplugins: {disabled: [odd]}\n")
    return home


def test_a_list_says_all_and_imports_nothing(full: Path, tmp_path: Path) -> None:
    """Kind, source, version, state, losers and what is broken, of folders and packages, and none is imported."""
    site = tmp_path / "site"
    package(site, "made_packed", SLEEPS, **{"hermes_agent.memory_providers": "packed = made_packed"})
    package(site, "made_wrong", SLEEPS, **{"hermes.memory_provider": "wrong = made_wrong"})
    rows = listed(full, env={"PYTHONPATH": str(site)})
    notes = rows["memory", "notes"]
    assert (notes["source"], notes["version"], notes["enabled"], notes["active"]) == (
        "profile",
        "1.2.0",
        True,
        True,
    )
    assert notes["shadowed"] == [f"profile {full / 'plugins' / 'memory' / 'notes'}"]
    assert (rows["memory", "local"]["source"], rows["memory", "local"]["active"]) == ("bundled", False)
    assert rows["context_engine", "compressor"]["active"] is True
    assert (rows["memory", "odd"]["enabled"], rows["memory", "odd"]["active"]) == (False, False)
    assert "plugin.yaml cannot be read" in rows["memory", "odd"]["note"]
    assert "broken link" in rows["general", "gone"]["broken"]
    packed = rows["memory", "packed"]
    assert (packed["source"], packed["distribution"], packed["version"]) == ("package", "made-packed", "1.0")
    assert "hermes_agent.memory_providers" in rows["memory", "wrong"]["broken"]


def test_what_a_person_reads(full: Path) -> None:
    """The list marks what is active and says what is wrong beside it, without colours in a pipe."""
    text = hermes("plugins", home=full).stdout
    assert "* notes" in text
    assert "active" in text
    assert "odd" in text
    assert "disabled" in text
    assert "broken: a broken link" in text
    assert "hides profile" in text
    assert "\x1b" not in text


def test_a_fresh_home_and_an_unknown_choice(home: Path) -> None:
    """Without a home the bundled ones are listed and nothing is made; a choice that is not there is a note."""
    assert listed(home)["memory", "local"]["active"] is True
    assert not home.exists()
    done = hermes("--set", "memory.provider=nosuch", "plugins", "list", home=home)
    assert done.returncode == 0
    assert "memory.provider is 'nosuch', and no plugin of that name" in done.stderr


def test_what_the_settings_say_as_text(full: Path) -> None:
    """A setting given as text, in the environment or with --set, counts in the list as it does elsewhere."""
    rows = listed(full, env={"HERMES__PLUGINS__DISABLED": "notes,other", "HERMES__MEMORY__PROVIDER": "local"})
    assert (rows["memory", "notes"]["enabled"], rows["memory", "local"]["active"]) == (False, True)
    assert rows["memory", "odd"]["enabled"] is True
    assert hermes("--set", "memory.provider=../x", "plugins", "list", home=full).returncode == 78


def test_a_failure_is_in_the_list(home: Path) -> None:
    """A plugin that did not load when it was needed says so in the list, with file and line."""
    folder = plugin(home / "plugins" / "notes", "import no_such_module\n" + PROVIDER)
    (home / "config.yaml").write_text("memory: {provider: notes}\n")
    done = hermes("memory", "status", home=home)
    assert done.returncode == 4
    assert "no_such_module" in done.stdout
    broken = listed(home)["memory", "notes"]["broken"]
    assert "No module named 'no_such_module'" in broken
    assert f"{folder / '__init__.py'}:1" in broken


def test_status_looks_at_the_chosen_one_alone(full: Path) -> None:
    """With other plugins that would sleep for a minute, status asks the chosen one and is done."""
    plugin(full / "plugins" / "quick", PROVIDER)
    done = hermes("memory", "status", "--json", "--set", "memory.provider=quick", home=full, timeout=30)
    assert json.loads(done.stdout)["provider"]["state"] == "ready"


def test_a_list_imports_little(full: Path) -> None:
    """Listing opens no profile: neither dynaconf, nor the container, nor the metadata library is imported."""
    code = """
import sys
from hermes.cli.app import run
run(["plugins", "list"])
print([name for name in ("dynaconf", "dependency_injector", "cattrs", "rich", "importlib.metadata", "asyncio")
       if name in sys.modules], file=sys.stderr)
"""
    done = python("-c", code, env={"HERMES_HOME": str(full)})
    assert done.stderr.strip().splitlines()[-1] == "[]"


def test_show(home: Path) -> None:
    """Everything about one plugin: manifest, tools, settings, hooks, what is unused, what lies outside, what leaves."""
    field = "{'key': 'api_key', 'secret': True, 'env_var': 'NOTES_KEY'}"
    source = PROVIDER.replace(
        "    def prefetch",
        "    def backup_paths(self):\n        return ['/elsewhere/notes']\n\n"
        f"    def get_config_schema(self):\n        return [{field}]\n\n    def prefetch",
    ).replace("return []", "return [{'name': 'notes_find', 'description': 'Finds.', 'parameters': {}}]", 1)
    source += "    ctx.register_hook('pre_llm_call', print)\n    ctx.register_skill('shelf')\n"
    folder = plugin(home / "plugins" / "notes", source, "name: notes\nversion: 3\nlicense: MIT\n")
    (folder / "README.md").write_text("# Notes\n\n## What leaves the device\n\nEvery message.\n")
    done = hermes("plugins", "show", "notes", "--json", home=home)
    found = json.loads(done.stdout)
    assert found["tools"] == [{"name": "notes_find", "description": "Finds."}]
    assert found["fields"] == [{"key": "api_key", "secret": True, "env_var": "NOTES_KEY"}]
    assert found["backup_paths"] == ["/elsewhere/notes"]
    assert (found["hooks"], found["unused"]) == (["pre_llm_call"], ["register_skill: shelf"])
    assert found["leaves_device"] == "Every message."
    assert found["manifest"]["license"] == "MIT"
    assert (found["own_name"], found["broken"], found["active"]) == ("notes-own-name", "", False)
    text = hermes("plugins", "show", "notes", home=home).stdout
    for part in (
        "notes_find",
        "NOTES_KEY",
        "/elsewhere/notes",
        "shelf",
        "Every message.",
        "in a process of its own",
    ):
        assert part in text


def test_show_what_is_broken_disabled_or_unknown(full: Path) -> None:
    """A broken one says why, a disabled one is not loaded, and an unknown one exits 3 with a hint."""
    plugin(full / "plugins" / "bad", "1 / 0\n" + PROVIDER)
    plugin(full / "plugins" / "odd", "raise SystemExit(9)\n")
    bad = json.loads(hermes("plugins", "show", "bad", "--json", home=full).stdout)
    assert "ZeroDivisionError" in bad["broken"]
    odd = json.loads(hermes("plugins", "show", "odd", "--json", home=full).stdout)
    assert (odd["enabled"], odd["broken"]) == (False, "")
    gone = json.loads(hermes("plugins", "show", "gone", "--json", home=full).stdout)
    assert "broken link" in gone["broken"]
    done = hermes("plugins", "show", "note", home=full)
    assert (done.returncode, done.stdout) == (3, "")
    assert "did you mean 'notes'" in done.stderr


def test_show_a_context_engine(home: Path) -> None:
    """A context engine is shown as one."""
    found = json.loads(hermes("plugins", "show", "compressor", "--json", home=home).stdout)
    assert (found["kind"], found["runs"], found["broken"]) == ("context_engine", "in this process", "")


def test_a_name_of_several_kinds(home: Path) -> None:
    """Where a memory provider and a context engine share a name, --kind says which; without it nothing is guessed."""
    plugin(home / "plugins" / "memory" / "both")
    plugin(home / "plugins" / "context_engine" / "both", PLAIN_REGISTER)
    done = hermes("plugins", "show", "both", home=home)
    assert (done.returncode, "memory, context_engine" in done.stderr) == (2, True)
    assert hermes("plugins", "remove", "both", "-y", home=home).returncode == 2
    found = json.loads(hermes("plugins", "show", "both", "--kind", "memory", "--json", home=home).stdout)
    assert found["kind"] == "memory"
    done = hermes("plugins", "remove", "both", "--kind", "context_engine", "-y", home=home)
    assert done.returncode == 0, done.stderr
    assert (home / "plugins" / "memory" / "both").is_dir()
    assert not (home / "plugins" / "context_engine" / "both").exists()
