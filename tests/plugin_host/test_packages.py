"""Plugins in installed packages: entry points and wheels that put a folder into plugins/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.loading import load
from hermes.plugin_host.packages import distributions, entry_points, installed
from hermes.plugin_host.plugin import Plugin
from tests.plugin_host.building import PLAIN_REGISTER, PROVIDER, overlay, package, plugin


def found(*sites: Path) -> dict[str, Plugin]:
    """The plugins in these folders of packages, by name."""
    return {one.name: one for one in installed([str(site) for site in sites])}


@pytest.mark.parametrize("group", ["hermes_agent.memory_providers", "hermes_agent.plugins", "hermes.plugins"])
@pytest.mark.parametrize("value", ["made_notes", "made_notes:register", "made_notes:Notes"])
def test_listed_and_loadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, value: str) -> None:
    """An entry point of each group names a memory provider: a module, its register function, or its class."""
    package(tmp_path, "made_notes", **{group: f"notes = {value}"})
    one = found(tmp_path)["notes"]
    assert (one.kind, one.source, one.distribution, one.version) == ("memory", "package", "made-notes", "1.0")
    assert one.path == tmp_path / "made_notes"
    monkeypatch.syspath_prepend(str(tmp_path))
    ctx = RegistrationContext("notes")
    try:
        load(one.spec(), ctx)
    finally:
        sys.modules.pop("made_notes", None)
    assert ctx.registered.memory_provider.name == "notes-own-name"


def test_nothing_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding plugins, and telling their kind, runs none of them."""
    source = f"open({str(tmp_path / 'ran')!r}, 'w')\n" + PROVIDER
    for name, group in (("made_one", "hermes_agent.plugins"), ("made_two", "hermes_agent.memory_providers")):
        package(tmp_path, name, source, **{group: f"{name} = {name}:register"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {one.kind for one in found(tmp_path).values()} == {"memory"}
    assert not (tmp_path / "ran").exists()
    assert "made_one" not in sys.modules


def test_a_group_for_all_kinds_is_told_by_the_source(tmp_path: Path) -> None:
    """An entry point that may be anything is a memory provider where its source or its manifest says so."""
    group = "hermes_agent__plugins"
    package(tmp_path, "made_general", PLAIN_REGISTER, **{group: "general = made_general"})
    package(tmp_path, "made_marked", PLAIN_REGISTER, **{group: "marked = made_marked:register"})
    (tmp_path / "made_marked" / "plugin.yaml").write_text("kind: memory\n")
    package(tmp_path, "made_deep", "", **{group: "deep = made_deep.hermes.provider:register"})
    plugin(tmp_path / "made_deep" / "hermes", "", provider=PROVIDER)
    assert {name: one.kind for name, one in found(tmp_path).items()} == {
        "general": "general",
        "marked": "memory",
        "deep": "memory",
    }
    assert found(tmp_path)["deep"].path == tmp_path / "made_deep" / "hermes"


def test_a_module_that_stands_alone_has_no_folder(tmp_path: Path) -> None:
    """A module right in site-packages does not take the files beside it for its own."""
    package(tmp_path, "made_alone", hermes_agent__plugins="alone = made_single")
    (tmp_path / "made_single.py").write_text(PROVIDER)
    (tmp_path / "cli.py").write_text("")
    one = found(tmp_path)["alone"]
    assert (one.kind, one.path, one.spec()["root"]) == ("memory", None, str(tmp_path))


def test_an_editable_install_is_found_where_its_code_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata in site-packages and code elsewhere: the folder is that of the code."""
    site, code = tmp_path / "site", tmp_path / "code"
    package(site, "made_editable", hermes_agent__plugins="editable = made_editable")
    (site / "made_editable").rename(tmp_path / "moved")
    plugin(code / "made_editable")
    monkeypatch.syspath_prepend(str(code))
    one = found(site)["editable"]
    assert (one.kind, one.path) == ("memory", code / "made_editable")


def test_one_plugin_in_two_groups(tmp_path: Path) -> None:
    """The same name twice in one distribution is one plugin: the group of providers counts."""
    package(
        tmp_path,
        "made_both",
        hermes_agent__plugins="both = made_both",
        hermes_agent__memory_providers="both = made_both:Notes",
    )
    every = list(installed([str(tmp_path)]))
    assert [(one.name, one.entry) for one in every] == [("both", "made_both:Notes")]


@pytest.mark.parametrize(
    "group", ["hermes.memory_provider", "hermes.memory_providers", "hermes.plugins.memory", "hermes.memory"]
)
def test_a_group_that_is_not_read(tmp_path: Path, group: str) -> None:
    """An entry point in a group that nobody reads is shown as broken, with the group that is meant."""
    package(tmp_path, "made_wrong", **{group: "wrong = made_wrong:register"})
    one = found(tmp_path)["wrong"]
    assert group in one.problem
    assert "hermes_agent.memory_providers" in one.problem


def test_a_general_plugin_beside_a_provider(tmp_path: Path) -> None:
    """A general plugin is none for the provider in the next module; that one's mistaken group is still told."""
    package(
        tmp_path,
        "made_pair",
        "",
        hermes_agent__plugins="pair = made_pair.general",
        hermes__memory_providers="pair = made_pair.memory:Notes",
    )
    plugin(tmp_path / "made_pair", None, general=PLAIN_REGISTER, memory=PROVIDER)
    kinds = {one.kind: one for one in installed([str(tmp_path)])}
    assert kinds["general"].problem == ""
    assert "hermes.memory_providers" in kinds["memory"].problem


def test_a_second_group_that_is_not_read_is_no_fault(tmp_path: Path) -> None:
    """A package that names the right group as well is not reported."""
    package(
        tmp_path,
        "made_right",
        hermes_agent__memory_providers="right = made_right",
        hermes__memory="right = made_right",
    )
    assert found(tmp_path)["right"].problem == ""


def test_overlays(tmp_path: Path) -> None:
    """A folder in plugins/<kind>/ beside the modules of packages counts where a package owns it."""
    overlay(tmp_path, "made_overlay", "memory", "over")
    overlay(tmp_path, "made_engine", "context_engine", "engine", PLAIN_REGISTER)
    plugin(tmp_path / "plugins" / "memory" / "stray")
    names = found(tmp_path)
    assert set(names) == {"over", "engine"}
    assert (names["over"].kind, names["over"].distribution, names["over"].version) == (
        "memory",
        "made-overlay",
        "2.0",
    )
    assert names["engine"].kind == "context_engine"
    ctx = RegistrationContext("over")
    load(names["over"].spec(), ctx)
    assert ctx.registered.memory_provider.name == "notes-own-name"


def test_the_plugins_folder_of_an_application_is_none(tmp_path: Path) -> None:
    """An application's own plugins/memory/ on the path is not taken for a plugin."""
    package(tmp_path / "site", "made_any")
    plugin(tmp_path / "app" / "plugins" / "memory" / "its")
    assert found(tmp_path / "app", tmp_path / "site") == {}


def test_the_first_distribution_of_a_name_counts(tmp_path: Path) -> None:
    """Of one distribution in two places on the path, the first is what is installed."""
    package(tmp_path / "a", "made_twice", version="2.0", **{"hermes.plugins": "twice = made_twice"})
    package(tmp_path / "b", "made_twice", version="1.0", **{"hermes.plugins": "twice = made_twice"})
    assert found(tmp_path / "a", tmp_path / "b")["twice"].version == "2.0"


def test_names_of_distributions(tmp_path: Path) -> None:
    """Wheels, eggs and what is neither."""
    for name in ("a_b-1.0.dist-info", "c-2.1-py3.11.egg-info", "d.egg-info", "e-0.1+local.dist-info", "f.py"):
        (tmp_path / name).mkdir()
    found = [(dist.name, dist.version) for dist in distributions([str(tmp_path), "", str(tmp_path / "gone")])]
    assert found == [("a-b", "1.0"), ("c", "2.1"), ("d", ""), ("e", "0.1+local")]


def test_the_file_of_entry_points() -> None:
    """Comments, spaces and extras in it are understood as the standard says."""
    text = "# c\n[ g.one ]\na = m:f [extra]\n; d\n\n[two]\nb=m.sub : C\n"
    assert entry_points(text) == {"g.one": {"a": "m:f"}, "two": {"b": "m.sub:C"}}


def test_a_name_that_is_no_name(tmp_path: Path) -> None:
    """An entry point whose name cannot be chosen is shown as broken."""
    package(tmp_path, "made_odd", hermes_agent__memory_providers="../evil = made_odd")
    assert "no plain name" in found(tmp_path)["../evil"].problem
