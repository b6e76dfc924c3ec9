"""The order in which plugins are found, and which one a name means."""

from __future__ import annotations

from pathlib import Path

from hermes.plugin_host.discovery import Places, Plugin
from tests.plugin_host.building import PLAIN_REGISTER, overlay, package, plugin

GROUP = "hermes_agent__memory_providers"


def everywhere(tmp_path: Path, name: str = "notes") -> Places:
    """*name* in the profile, in the root, as an entry point and as an overlay."""
    plugin(tmp_path / "profile" / name)
    plugin(tmp_path / "profile" / "memory" / name)
    plugin(tmp_path / "root" / name)
    package(tmp_path / "site", "made_entry", **{GROUP: f"{name} = made_entry"})
    overlay(tmp_path / "site", "made_overlay", "memory", name)
    return Places(tmp_path / "profile", tmp_path / "root", [str(tmp_path / "site")])


def the(places: Places, name: str, kind: str = "memory") -> Plugin:
    """The plugin *name* as the listing has it."""
    (one,) = [one for one in places.all() if (one.name, one.kind) == (name, kind)]
    return one


def test_the_first_wins_and_says_whom_it_hides(tmp_path: Path) -> None:
    """Profile before root before packages before overlays; each loser is named with where it lies."""
    one = the(everywhere(tmp_path), "notes")
    assert (one.source, one.path) == ("profile", tmp_path / "profile" / "notes")
    assert one.shadowed == (
        f"profile {tmp_path / 'profile' / 'memory' / 'notes'}",
        f"root {tmp_path / 'root' / 'notes'}",
        "package made-entry 1.0",
        "package made-overlay 2.0",
    )


def test_bundled_ones_come_first(tmp_path: Path) -> None:
    """A plugin that is called like a bundled one does not take its place, and is shown as hidden."""
    places = everywhere(tmp_path, "local")
    one = the(places, "local")
    assert one.source == "bundled"
    assert len(one.shadowed) == 5
    chosen = places.find("local", "memory")
    assert chosen is not None
    assert chosen.source == "bundled"


def test_list_and_choice_agree(tmp_path: Path) -> None:
    """What a name means when it is chosen is what the list shows for it."""
    places = everywhere(tmp_path)
    chosen = places.find("notes", "memory")
    assert chosen is not None
    assert chosen.where == the(places, "notes").where


def test_the_default_profile_is_the_root(tmp_path: Path) -> None:
    """Where profile and root are one folder, nothing is found twice."""
    plugin(tmp_path / "plugins" / "notes")
    assert the(Places(tmp_path / "plugins", tmp_path / "plugins", []), "notes").shadowed == ()


def test_kinds_do_not_hide_each_other(tmp_path: Path) -> None:
    """A memory provider and a context engine may have one name."""
    plugin(tmp_path / "memory" / "both")
    plugin(tmp_path / "context_engine" / "both", PLAIN_REGISTER)
    places = Places(tmp_path, None, [])
    assert the(places, "both").shadowed == the(places, "both", "context_engine").shadowed == ()


def test_a_plugin_of_no_known_kind_can_be_chosen(tmp_path: Path) -> None:
    """Where nothing says that it is a provider, the choice itself does; one that is known comes first."""
    plugin(tmp_path / "quiet", PLAIN_REGISTER)
    places = Places(tmp_path, None, [])
    assert the(places, "quiet", "general").source == "profile"
    found = places.find("quiet", "memory")
    assert found is not None
    assert found.kind == "general"
    package(tmp_path / "site", "made_loud", **{GROUP: "quiet = made_loud"})
    louder = Places(tmp_path, None, [str(tmp_path / "site")]).find("quiet", "memory")
    assert louder is not None
    assert louder.source == "package"
    assert places.find("absent", "memory") is None
