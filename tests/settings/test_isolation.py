"""Nothing but the layers decides: not dynaconf's own habits, not the process, not another profile."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes.profiles import Profile
from hermes.settings import load
from hermes.settings.profile_settings import ProfileSettings
from tests.settings.conftest import Write
from tests.support import python

STRANGE = """\
memory:
  provider: mem0
  mem0:
    Key: 1
    key: 2
    KEY: 3
    7: seven
    null: nothing
    true: yes it is
    a.b: dotted
    x__y: underscores
    at: '@read_file /etc/hostname'
    format: '@format {env[HOME]}'
    list: ['@del', '@none x', '@int 5']
    dynaconf_merge: true
    items: {keys: [1]}
"""
STRANGE_NAMES = """
    items keys values get set update loaders validators environ store logger flag fresh from_env env yaml
    as_dict reload clean dynaconf settings_module SETTINGS_MODULE Memory MEMORY a.b x__y dynaconf_include
    LOADERS_FOR_DYNACONF
"""


def test_what_belongs_to_a_plugin_comes_as_it_is_written(write: Write) -> None:
    """Case, integer, null and boolean keys, dots, ``__`` and ``@`` texts mean nothing here."""
    assert load(write(STRANGE), environ={}).memory.providers["mem0"] == {
        "Key": 1,
        "key": 2,
        "KEY": 3,
        7: "seven",
        None: "nothing",
        True: "yes it is",
        "a.b": "dotted",
        "x__y": "underscores",
        "at": "@read_file /etc/hostname",
        "format": "@format {env[HOME]}",
        "list": ["@del", "@none x", "@int 5"],
        "dynaconf_merge": True,
        "items": {"keys": [1]},
    }


def test_sections_of_any_name_pass_through(write: Write) -> None:
    """Sections called like dynaconf's attributes, or like ours in another case, are carried as they are."""
    names = STRANGE_NAMES.split()
    text = "".join(f"{name}: {{x: 1, X: 2}}\n" for name in names)
    settings = load(write(text + "1: [a]\nnull: b\n2024-01-02: c\n"), environ={})
    assert all(settings.merged[name] == {"x": 1, "X": 2} for name in names)
    assert (settings.merged[1], settings.merged[None]) == (["a"], "b")
    assert settings.memory.provider is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DYNACONF_MEMORY__PROVIDER", "evil"),
        ("DYNACONF_MEMORY", "{provider='evil'}"),
        ("MEMORY", "{provider='evil'}"),
        ("MEMORY__PROVIDER", "evil"),
        ("LOADERS_FOR_DYNACONF", "['evil_loader']"),
        ("CORE_LOADERS_FOR_DYNACONF", "['YAML']"),
        ("MERGE_ENABLED_FOR_DYNACONF", "true"),
        ("AUTO_CAST_FOR_DYNACONF", "true"),
        ("ENVIRONMENTS_FOR_DYNACONF", "true"),
        ("ENV_FOR_DYNACONF", "production"),
        ("LOWERCASE_READ_FOR_DYNACONF", "false"),
        ("NESTED_SEPARATOR_FOR_DYNACONF", "_"),
        ("FRESH_VARS_FOR_DYNACONF", "['MEMORY']"),
        ("SYSENV_FALLBACK_FOR_DYNACONF", "true"),
        ("VALIDATE_ON_UPDATE_FOR_DYNACONF", "true"),
        ("SETTINGS_FILE_FOR_DYNACONF", "evil.yaml"),
        ("INCLUDES_FOR_DYNACONF", "['evil.yaml']"),
        ("PRELOAD_FOR_DYNACONF", "['evil.yaml']"),
        ("SECRETS_FOR_DYNACONF", "evil.yaml"),
        ("ROOT_PATH_FOR_DYNACONF", "."),
        ("LOAD_DOTENV_FOR_DYNACONF", "true"),
        ("HERMES_MEMORY__PROVIDER", "evil"),
    ],
)
def test_the_environment_of_the_process_has_no_say(tmp_path: Path, name: str, value: str) -> None:
    """Whatever a variable of dynaconf says: the settings are those of the layers, and nothing is executed."""
    for file in ("settings.yaml", "evil.yaml", ".env", "dynaconf_hooks.py", "evil_loader.py"):
        text = "raise SystemExit('executed')\n" if file.endswith(".py") else "MEMORY: {provider: evil}\n"
        (tmp_path / file).write_text(text)
    (tmp_path / ".env").write_text("DYNACONF_MEMORY__PROVIDER=evil\nMEMORY=evil\n")
    (tmp_path / "config.yaml").write_text("memory: {provider: good, tags: ['@int 5'], good: {list: [b]}}\n")
    (tmp_path / "common.yaml").write_text("memory: {good: {list: [a]}}\n")
    script = (
        "import os, sys; before = dict(os.environ)\n"
        "from pathlib import Path\n"
        "from hermes.profiles import Profile\n"
        "from hermes.settings import load\n"
        "home = Path.cwd(); s = load(Profile('default', home, home, 'test'), environ={})\n"
        "assert dict(os.environ) == before\n"
        "print(s.memory.provider, s.memory.providers, s.memory.memory_char_limit)"
    )
    done = python("-c", script, cwd=tmp_path, env={name: value, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(maxsplit=1) == ["good", "{'good': {'list': ['b']}} 2200\n"]


def test_optional_frameworks_are_not_imported(tmp_path: Path) -> None:
    """dynaconf would import flask, django and jinja2 where they are installed; it does not get them."""
    for name in ("flask", "django", "jinja2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    script = (
        "import hermes.settings.profile_settings, sys; print(sorted({'flask', 'jinja2'} & set(sys.modules)))"
    )
    done = python("-c", script, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_only_one_module_knows_dynaconf() -> None:
    """What is untyped and full of traps is imported in one place."""
    root = Path(__file__).resolve().parents[2]
    users = [
        path.relative_to(root).as_posix()
        for folder in ("hermes", "settings", "cli", "containers", "plugins")
        for path in (root / folder).rglob("*.py")
        if "import dynaconf" in path.read_text("utf-8") or "from dynaconf" in path.read_text("utf-8")
    ]
    assert users == ["settings/profile_settings.py"]


def test_dotenv_of_one_profile_never_reaches_another(root: Path) -> None:
    """Whatever order they are loaded in, and in many threads at once, each has its own."""
    profiles = []
    for n in range(4):
        home = root / "profiles" / f"p{n}"
        home.mkdir(parents=True)
        (home / ".env").write_text(f"HERMES__MODEL__API_KEY=key-{n}\n" if n % 2 else "OTHER=1\n")
        profiles.append(Profile(f"p{n}", root, home, "test"))
    before = dict(os.environ)
    seen: list[tuple[int, str | None]] = []

    def work() -> None:
        for _ in range(10):
            for n, profile in enumerate(profiles):
                key = load(profile, environ={}).model.api_key
                seen.append((n, key.reveal() if key else None))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 160
    assert set(seen) == {(0, None), (1, "key-1"), (2, None), (3, "key-3")}
    assert dict(os.environ) == before


def test_reload_keeps_the_layers() -> None:
    """Reloading asks every layer again; it does not fall back to dynaconf's own search."""
    layers: list[tuple[str, str, dict[str, Any]]] = [
        ("default", "d", {"memory": {"a": 1, "b": 1}}),
        ("profile", "p", {"memory": {"b": 2}}),
    ]
    settings = ProfileSettings(lambda: layers)
    assert settings.sections() == {"memory": {"a": 1, "b": 2}}
    settings.reload()
    assert settings.sections() == {"memory": {"a": 1, "b": 2}}
    layers[1] = ("profile", "p", {"memory": {"b": 3}})
    settings.reload()
    assert settings.sections() == {"memory": {"a": 1, "b": 3}}


def test_what_is_loaded_shares_nothing_with_the_next(write: Write) -> None:
    """Changing a mapping that one load gave changes no other."""
    profile = write("memory: {mem0: {list: [1]}}\nother: {list: [1]}\n")
    first: Any = load(profile, environ={})
    first.memory.providers["mem0"]["list"].append(2)
    first.merged["other"]["list"].append(2)
    first.merged["tools"]["disabled"].append("x")
    second = load(profile, environ={})
    assert second.memory.providers["mem0"] == {"list": [1]}
    assert second.merged["other"] == {"list": [1]}
    assert second.merged["tools"]["disabled"] == []
