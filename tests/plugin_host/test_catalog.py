"""The plugins of an open profile: chosen by name, run where the settings say, and reported when they fail."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.containers import Hermes
from hermes.errors import ProfileBusy, ProviderUnavailable
from hermes.plugin_host.catalog import Catalog
from hermes.plugin_host.worker.provider import WorkerProvider
from tests.plugin_host.building import PLAIN_REGISTER, PROVIDER, plugin, provider

WHERE = PROVIDER.replace(
    "        return self.said",
    "        import os\n        return '|'.join([str(os.getpid()), os.environ.get('HERMES_HOME', ''), "
    "os.environ.get('NOTES_KEY', '')])",
)
IN_THREAD = {"plugins.isolation": "thread"}


def profile(
    home: Path, name: str = "work", config: str = "memory: {provider: notes}\n", env: str = ""
) -> Path:
    """A profile with settings of its own; its home."""
    folder = home / "profiles" / name
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config)
    (folder / ".env").write_text(env)
    return folder


def root(home: Path, settings: Mapping[str, str] | None = None) -> Hermes:
    """A composition root over *home*."""
    return Hermes(
        environ=dict(os.environ), home=home, settings=[f"{k}={v}" for k, v in (settings or {}).items()]
    )


def recalled(opened: Any, query: str = "what?") -> str:
    """What the manager of an open profile recalls."""
    manager = opened.memory_manager()
    manager.initialize_all("s1")
    return str(manager.prefetch_all(query))


def test_an_outside_provider_runs_in_a_process_of_its_own(home: Path) -> None:
    """By default a provider in the profile's folder is asked in another process, with the profile's environment."""
    folder = profile(home, env="NOTES_KEY=of-work\n")
    plugin(folder / "plugins" / "notes", WHERE)
    before = dict(os.environ)
    with root(home).open("work") as me:
        pid, seen_home, key = recalled(me).split("|")
    assert int(pid) != os.getpid()
    assert (seen_home, key) == (str(folder), "of-work")
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "settings",
    [IN_THREAD, {"plugins.notes.isolation": "thread"}],
    ids=["for all plugins", "for one plugin"],
)
def test_in_this_process_on_request(home: Path, settings: dict[str, str]) -> None:
    """Asked for, it runs here: the variables of the profile are in the environment while it is open, and gone after."""
    folder = profile(home, env="NOTES_KEY=of-work\n")
    plugin(folder / "plugins" / "notes", "import hermes_constants\n" + WHERE)
    before = dict(os.environ)
    with root(home, settings).open("work") as me:
        assert recalled(me) == f"{os.getpid()}|{folder}|of-work"
    assert dict(os.environ) == before


def test_one_profile_at_a_time_in_this_process(home: Path) -> None:
    """While one profile has the environment of this process, another that wants it is refused."""
    for name in ("work", "other"):
        plugin(profile(home, name) / "plugins" / "notes")
    with root(home, IN_THREAD).open("work") as work, root(home, IN_THREAD).open("other") as other:
        assert work.memory_provider() is not None
        with pytest.raises(ProfileBusy):
            other.memory_provider()
    with root(home, IN_THREAD).open("other") as other:
        assert other.memory_provider() is not None


def test_one_profile_twice_in_this_process(home: Path) -> None:
    """The same profile, opened again while it is open, may run its plugin here as well."""
    plugin(profile(home) / "plugins" / "notes", "import hermes_constants\n" + WHERE)
    before = list(sys.meta_path)
    with root(home, IN_THREAD).open("work") as outer:
        assert outer.memory_provider() is not None
        with root(home, IN_THREAD).open("work") as inner:
            assert recalled(inner).startswith(f"{os.getpid()}|")
        assert recalled(outer).startswith(f"{os.getpid()}|")
    assert sys.meta_path == before


def test_two_profiles_with_two_versions(home: Path) -> None:
    """Two profiles that are open at once run their own code of one plugin."""
    for name in ("work", "other"):
        plugin(profile(home, name) / "plugins" / "notes", provider(f"version of {name}"))
    with root(home).open("work") as work, root(home).open("other") as other:
        assert recalled(work) == "version of work"
        assert recalled(other) == "version of other"


def test_a_bundled_one_can_be_put_into_a_process(home: Path) -> None:
    """isolation: process holds for bundled plugins too, and they work there as they do here."""
    profile(home, config="memory: {provider: local}\n")
    with root(home, {"plugins.local.isolation": "process"}).open("work") as me:
        manager = me.memory_manager()
        manager.initialize_all("s1")
        manager.sync_all("Ada likes tea.", "Noted.")
        assert manager.flush_pending(10)
        manager.on_session_switch("s2")
        manager.flush_pending(10)
        assert "Ada likes tea." in manager.prefetch_all("What does Ada like?")
        assert isinstance(me.memory_provider(), WorkerProvider)


def test_a_plugin_of_all_profiles(home: Path) -> None:
    """What lies in the root's plugins/ can be chosen in every profile; the profile's own comes first."""
    profile(home)
    plugin(home / "plugins" / "notes", provider("of all"))
    with root(home).open("work") as me:
        assert recalled(me) == "of all"
    plugin(home / "profiles" / "work" / "plugins" / "memory" / "notes", provider("of one"))
    with root(home).open("work") as me:
        assert recalled(me) == "of one"


def test_its_settings_and_its_host(home: Path) -> None:
    """A plugin reads the profile's settings through its host, from the very start."""
    folder = profile(home, config="memory:\n  provider: notes\n  notes: {flavour: mild}\n")
    source = PROVIDER.replace(
        "    ctx.register",
        "    Notes.said = ctx.config['memory']['notes']['flavour'] + ctx.profile_name\n    ctx.register",
    )
    plugin(folder / "plugins" / "notes", source)
    for settings in ({}, IN_THREAD):
        with root(home, settings).open("work") as me:
            assert recalled(me) == "mildwork"


@pytest.mark.parametrize("settings", [{}, IN_THREAD], ids=["process", "thread"])
def test_one_that_fails_is_reported_once_with_file_and_line(home: Path, settings: dict[str, str]) -> None:
    """A plugin that does not load: exception, file and line in the error, in the log once, and kept for lists."""
    folder = profile(home)
    broken = plugin(folder / "plugins" / "notes", "\nimport no_such_module\n" + PROVIDER) / "__init__.py"
    for _ in range(2):
        with root(home, settings).open("work") as me:
            with pytest.raises(ProviderUnavailable) as caught:
                me.memory_provider()
            assert "No module named 'no_such_module'" in caught.value.reason
            assert f"{broken}:2" in caught.value.reason
            assert me.plugins().failures["notes"].line == 2
            manager = me.memory_manager()
            manager.initialize_all("s1")  # goes on without it
            assert "no_such_module" in manager.status().refused[0].reason
    lines = [json.loads(line) for line in (folder / "logs" / "memory.log").read_text().splitlines()]
    told = [line for line in lines if line.get("plugin") == "notes"]
    assert [(line["level"], line["file"], line["line"]) for line in told] == [("warning", str(broken), 2)]


def test_one_that_was_mended_is_no_failure_any_more(home: Path) -> None:
    """A plugin that loads again is taken off the list of failures."""
    folder = profile(home)
    plugin(folder / "plugins" / "notes", "1 / 0\n" + PROVIDER)
    with root(home).open("work") as me, pytest.raises(ProviderUnavailable, match="ZeroDivisionError"):
        me.memory_provider()
    plugin(folder / "plugins" / "notes", provider("mended"))
    with root(home).open("work") as me:
        assert recalled(me) == "mended"
        assert me.plugins().failures == {}


def test_a_failure_does_not_quote_secrets(home: Path) -> None:
    """A secret in the message of an exception is masked in the error, in the list and in the log."""
    folder = profile(home)
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    plugin(folder / "plugins" / "notes", f"raise RuntimeError('bad key {secret}')\n" + PROVIDER)
    with root(home).open("work") as me:
        with pytest.raises(ProviderUnavailable) as caught:
            me.memory_provider()
        assert secret not in str(caught.value)
    for file in (folder / "logs").rglob("*"):
        assert file.is_dir() or secret not in file.read_text()
    assert "bad key" in (folder / "logs" / "plugins.json").read_text()


@pytest.mark.parametrize(
    ("name", "reason", "next_step"),
    [
        ("../notes", "never by a path", ""),
        ("a/b", "never by a path", ""),
        ("", "never by a path", ""),
        ("note", "did you mean 'notes'", "hermes config set memory.provider notes"),
        ("whatever", "no plugin of that name", "hermes config set memory.provider local"),
        ("off", "plugins.disabled", "hermes plugins enable off"),
        ("gone", "broken link", "hermes plugins show gone"),
        ("general", "registers no memory provider", "hermes plugins show general"),
    ],
)
def test_a_name_that_cannot_be_used(home: Path, name: str, reason: str, next_step: str) -> None:
    """Each reason why a name gives no provider is said, with what to do about it."""
    folder = profile(home, config="plugins: {disabled: ['off']}\n")
    for installed in ("notes", "off"):
        plugin(folder / "plugins" / installed)
    plugin(folder / "plugins" / "general", PLAIN_REGISTER)
    (folder / "plugins" / "gone").symlink_to(home / "nowhere")
    with root(home).open("work") as me, pytest.raises(ProviderUnavailable) as caught:
        me.plugins().memory_provider(name)
    assert reason in caught.value.reason
    assert next_step in caught.value.next_step


def test_an_isolation_that_there_is_not(home: Path) -> None:
    """A mistyped isolation of one plugin is said, and the plugin is not run anywhere."""
    folder = profile(home, config="memory: {provider: notes}\nplugins: {notes: {isolation: treadh}}\n")
    plugin(folder / "plugins" / "notes")
    with root(home).open("work") as me, pytest.raises(ProviderUnavailable, match="'treadh', expected auto"):
        me.memory_provider()


def test_context_engines(home: Path) -> None:
    """An engine is made anew for each conversation; one that registers none is reported as what it is."""
    folder = profile(home, config="context: {engine: short}\n")
    engine = (
        "class Engine:\n    name = 'short'\n\ndef register(ctx):\n    ctx.register_context_engine(Engine())\n"
    )
    plugin(folder / "plugins" / "context_engine" / "short", engine)
    plugin(folder / "plugins" / "context_engine" / "none", PLAIN_REGISTER)
    with root(home).open("work") as me:
        assert me.context_engine() is not me.context_engine()
        assert me.context_engine().name == "short"
        assert set(me.plugins().context_engines) == {"compressor", "none", "short"}
        with pytest.raises(
            ProviderUnavailable, match=r"context engine 'none': .*registers no context engine"
        ):
            me.plugins().context_engine("none")


def test_hooks_of_an_outside_plugin_are_fired(home: Path, tmp_path: Path) -> None:
    """What a plugin in a process of its own hooks into sessions is called there."""
    folder = profile(home)
    seen = tmp_path / "seen"
    hook = f"lambda session_id, **_: open({str(seen)!r}, 'w').write(session_id)"
    plugin(folder / "plugins" / "notes", f"{PROVIDER}    ctx.register_hook('on_session_start', {hook})\n")
    with root(home).open("work") as me:
        recalled(me)
        assert me.plugins().registered("notes").hooks.keys() == {"on_session_start"}
    assert seen.read_text() == "s1"


def test_a_catalog_for_no_profile_can_only_be_looked_at() -> None:
    """Without an open profile plugins can be listed, and none can be run."""
    assert "local" in Catalog().memory
    with pytest.raises(ProviderUnavailable, match="no profile is open"):
        Catalog().memory_provider("local")


def test_a_healthy_home_is_left_as_it_was(home: Path) -> None:
    """Loading a plugin that works writes nothing below the home but what Python itself keeps."""
    folder = profile(home)
    plugin(folder / "plugins" / "notes")
    before = sorted(path for path in folder.rglob("*"))
    with root(home).open("work") as me:
        assert me.memory_provider() is not None
    assert sorted(p for p in folder.rglob("*") if "__pycache__" not in p.parts) == before


def test_a_provider_is_known_by_the_name_it_was_chosen_by(home: Path) -> None:
    """A plugin whose provider calls itself as another plugin is called gets nothing that is owed to that one."""
    folder = profile(home, config="memory: {provider: mine}\n")
    plugin(folder / "plugins" / "mine", PROVIDER.replace('"notes-own-name"', '"local"'))
    with root(home).open("work") as me:
        manager = me.memory_manager()
        assert manager.external_name == "mine"
        manager.initialize_all("s1")
        manager.sync_all("hello", "there")
        assert set(me.journal().stats().undelivered_by_provider) <= {"mine"}
        assert manager.flush_pending(10)
        assert not me.journal().stats().undelivered_by_provider
