"""Plugins in folders: what counts as one, of which kind it is, what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.plugin_host.discovery import Places
from hermes.plugin_host.folders import below, package_in
from hermes.plugin_host.plugin import Plugin
from tests.plugin_host.building import PLAIN_REGISTER, PROVIDER, plugin
from tests.support import give_to_nobody, unprivileged


def found(place: Path) -> dict[str, Plugin]:
    """What lies in *place*, by name."""
    return {one.name: one for one in below(place, "profile")}


@pytest.mark.parametrize("where", ["notes", "memory/notes"])
def test_both_levels(tmp_path: Path, where: str) -> None:
    """A provider is found in plugins/<name>/ and in plugins/memory/<name>/."""
    plugin(tmp_path / where)
    one = found(tmp_path)["notes"]
    assert (one.kind, one.source, one.path) == ("memory", "profile", tmp_path / where)


def test_a_context_engine_has_a_folder_too(tmp_path: Path) -> None:
    """What lies in plugins/context_engine/ is a context engine, whatever its source says."""
    plugin(tmp_path / "context_engine" / "short", PLAIN_REGISTER)
    assert found(tmp_path)["short"].kind == "context_engine"


@pytest.mark.parametrize(
    ("manifest", "source", "kind", "decided"),
    [
        ("kind: memory\n", PLAIN_REGISTER, "memory", "kind in plugin.yaml"),
        ("kind: memory-provider\n", PLAIN_REGISTER, "memory", "kind in plugin.yaml"),
        ("kind: context_engine\n", PROVIDER, "context_engine", "kind in plugin.yaml"),
        ("kind: platform\n", PROVIDER, "general", "kind in plugin.yaml"),
        ("kind: exclusive\ncategory: memory\n", PLAIN_REGISTER, "memory", "category in plugin.yaml"),
        ("kind: exclusive\n", PROVIDER, "memory", "register_memory_provider in __init__.py"),
        ("hooks: [on_session_end, sync_turn]\n", PLAIN_REGISTER, "memory", "sync_turn among the hooks"),
        ("hooks: [on_session_end]\n", PLAIN_REGISTER, "general", "nothing says"),
        ("name: x: y\n", PROVIDER, "memory", "register_memory_provider in __init__.py"),
        (None, PROVIDER, "memory", "register_memory_provider in __init__.py"),
        (None, "#" * 9000 + "\n" + PROVIDER, "memory", "register_memory_provider in __init__.py"),
        (
            None,
            "from real.package import register  # MemoryProvider\n",
            "memory",
            "MemoryProvider in __init__.py",
        ),
        (
            None,
            "def register(ctx):\n    ctx.register_context_engine(1)\n",
            "context_engine",
            "register_context",
        ),
        (None, PLAIN_REGISTER, "general", "nothing says"),
    ],
)
def test_the_kind(tmp_path: Path, manifest: str | None, source: str, kind: str, decided: str) -> None:
    """The manifest decides where it says something, else the whole source; and it is said which."""
    plugin(tmp_path / "x", source, manifest)
    one = found(tmp_path)["x"]
    assert one.kind == kind
    assert decided in one.decided


def test_a_provider_in_a_module_beside_it(tmp_path: Path) -> None:
    """A package that only passes on what a module of it defines is told by that module."""
    plugin(tmp_path / "x", "from .core import register\n", core=PROVIDER)
    one = found(tmp_path)["x"]
    assert (one.kind, one.decided) == ("memory", "register_memory_provider in core.py")


@pytest.mark.parametrize("inside", ["hermes_mimir", "src/hermes_mimir", "mimir"])
def test_a_package_one_folder_deeper(tmp_path: Path, inside: str) -> None:
    """A repository put there as it is counts by its own name, not by that of the package in it."""
    plugin(tmp_path / "mimir" / inside)
    plugin(tmp_path / "mimir" / "tests", "")
    one = found(tmp_path)["mimir"]
    assert (one.package, one.kind) == (inside, "memory")
    assert one.spec()["path"] == str(tmp_path / "mimir" / inside)


def test_the_package_of_that_name_is_meant(tmp_path: Path) -> None:
    """Of several packages in a folder the one with its name is the plugin; none is guessed."""
    for name in ("alpha", "beta"):
        plugin(tmp_path / "thing" / name)
    assert package_in(tmp_path / "thing") is None
    plugin(tmp_path / "thing" / "hermes_thing")
    assert package_in(tmp_path / "thing") == "hermes_thing"


def test_what_is_no_plugin(tmp_path: Path) -> None:
    """Files, hidden folders and folders without code are passed over in silence."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.json").write_text("{}")
    (tmp_path / "readme.md").write_text("")
    plugin(tmp_path / ".hidden")
    plugin(tmp_path / "__pycache__")
    assert found(tmp_path) == {}
    assert list(below(tmp_path / "missing", "profile")) == []


def test_a_manifest_without_code_is_broken(tmp_path: Path) -> None:
    """A folder that says it is a plugin and has no code is shown with that."""
    plugin(tmp_path / "x", None, "name: x\n")
    assert "no __init__.py" in found(tmp_path)["x"].problem


@pytest.mark.parametrize("name", ["-x", "a b", "ä", "a..b", "x" * 65])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    """A folder whose name cannot be chosen is shown with that; no path is ever built from a setting."""
    plugin(tmp_path / name)
    assert "plain name" in found(tmp_path)[name].problem


def test_hyphens_dots_and_capitals(tmp_path: Path) -> None:
    """Names that are no Python names are fine."""
    for name in ("my-notes", "mem0.ai", "Notes_2"):
        plugin(tmp_path / name)
    assert set(found(tmp_path)) == {"my-notes", "mem0.ai", "Notes_2"}
    assert not any(one.problem for one in found(tmp_path).values())


def test_links(tmp_path: Path) -> None:
    """A linked plugin is one; a link that leads nowhere, or in circles, is shown as broken."""
    plugin(tmp_path / "elsewhere" / "real")
    place = tmp_path / "plugins"
    place.mkdir()
    (place / "linked").symlink_to(tmp_path / "elsewhere" / "real")
    (place / "gone").symlink_to(tmp_path / "nowhere")
    (place / "circle").symlink_to(place / "circle")
    links = found(place)
    assert not links["linked"].problem
    assert str(tmp_path / "nowhere") in links["gone"].problem
    assert "broken link" in links["circle"].problem


def test_a_broken_link_beside_the_code(tmp_path: Path) -> None:
    """A module that cannot be read does not hide the plugin."""
    plugin(tmp_path / "x", "from .core import register\n", core=PROVIDER)
    (tmp_path / "x" / "aaa.py").symlink_to(tmp_path / "nowhere")
    assert found(tmp_path)["x"].kind == "memory"


def test_an_invalid_manifest_is_a_note(tmp_path: Path) -> None:
    """A manifest that is no YAML is shown and keeps nothing from being used."""
    plugin(tmp_path / "x", manifest="description: local: first\n")
    one = found(tmp_path)["x"]
    assert not one.problem
    assert "plugin.yaml cannot be read" in one.note
    plugin(tmp_path / "y")
    assert found(tmp_path)["y"].note == ""


def test_a_folder_that_cannot_be_read(reachable: Path) -> None:
    """A folder without permission is passed over or shown, and the others are found."""
    plugin(reachable / "plugins" / "good")
    plugin(reachable / "plugins" / "secret").chmod(0o000)
    give_to_nobody(reachable)

    def check() -> None:
        names = {one.name for one in Places(reachable / "plugins", None, []).all() if one.source == "profile"}
        assert "good" in names

    unprivileged(check)
