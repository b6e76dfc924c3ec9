"""The composition root and the container of one profile."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dependency_injector import providers

from hermes.containers import Hermes
from hermes.containers.blueprint import Blueprint
from hermes.containers.root import PARTS
from hermes.errors import ConfigError, ProfileNotFound
from hermes.testing import RecordingProvider


@pytest.fixture
def root(home: Path) -> Hermes:
    """A root over a home with two profiles."""
    for name in ("work", "other"):
        folder = home / "profiles" / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("memory:\n  provider: local\n")
    return Hermes(environ={}, home=home)


def below(folder: Path) -> list[str]:
    """Every path below *folder*."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_opening_creates_nothing(root: Hermes, home: Path) -> None:
    """Opening a profile, asking for its manager and closing it leaves the home as it was."""
    before = below(home)
    with root.open("work") as me:
        assert [p.name for p in me.memory_manager().providers] == ["builtin", "local"]
    assert below(home) == before


def test_override_puts_a_part_in(root: Hermes) -> None:
    """An overriding provider is what the manager drives."""
    provider = RecordingProvider(recall="Ada likes tea.")
    with root.override(memory_provider=provider).open("work") as me:
        me.memory_manager().initialize_all("s1")
        assert "Ada likes tea." in me.memory_manager().prefetch_all("What does Ada like?")
    assert provider.named("initialize")[0]["hermes_home"] == str(me._root.home / "profiles" / "work")  # type: ignore[operator]


def test_override_leaves_the_root_as_it_was(root: Hermes) -> None:
    """Overriding gives a sibling; the root it came from keeps its own parts."""
    root.override(memory_provider=RecordingProvider())
    with root.open("work") as me:
        provider = me.memory_provider()
        assert provider is not None
        assert provider.name == "local"


def test_override_refuses_an_unknown_part(root: Hermes) -> None:
    """A name that the container does not have is an error that lists the names it has."""
    with pytest.raises(TypeError, match=r"memory_providr.*memory_provider"):
        root.override(memory_providr=object())


def test_the_listed_parts_are_those_of_the_blueprint() -> None:
    """What can be overridden is what the blueprint declares, but for its inputs."""
    assert set(Blueprint.providers) - {"environ", "opened"} == PARTS


def test_profiles_share_nothing(root: Hermes) -> None:
    """Two open profiles have no part in common."""
    with root.open("work") as work, root.open("other") as other:
        assert work.memory_manager() is not other.memory_manager()
        assert work.builtin_provider() is not other.builtin_provider()
        assert work.journal() is not other.journal()
        assert work.paths().home != other.paths().home


def test_target_is_rebuilt_with_the_same_overrides(root: Hermes) -> None:
    """A target profile has a container of its own, made with the opener's overrides."""
    made: list[str] = []

    def provider() -> RecordingProvider:
        made.append("one")
        return RecordingProvider()

    with (
        root.override(memory_provider=providers.Singleton(provider)).open("work") as me,
        me.target("other") as other,
    ):
        assert other.settings().profile.name == "other"
        assert other.memory_provider() is not None
    assert made


def test_target_opens_the_target_alone(root: Hermes, home: Path) -> None:
    """With a target the opener has only to exist: its broken settings are not read, its home is not touched."""
    broken = home / "profiles" / "work" / "config.yaml"
    broken.write_text("memory: [not, a, mapping]\n")
    with root.open("work", target="other") as me:
        assert me.settings().profile.name == "other"
    with pytest.raises(ConfigError):
        root.open("work")


@pytest.mark.parametrize("opener", ["work", "nosuch"])
def test_unknown_profiles_are_refused(root: Hermes, opener: str) -> None:
    """An opener or a target that does not exist is named, and nothing is opened."""
    with pytest.raises(ProfileNotFound, match="nosuch"):
        root.open(opener, target="nosuch")


def test_the_environment_is_read_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings come from the environment as it was when the root was made."""
    monkeypatch.setenv("HERMES__MEMORY__NUDGE_INTERVAL", "3")
    root = Hermes(home=home)
    monkeypatch.setenv("HERMES__MEMORY__NUDGE_INTERVAL", "4")
    with root.open() as me:
        assert me.settings().memory.nudge_interval == 3
    assert os.environ["HERMES__MEMORY__NUDGE_INTERVAL"] == "4"


def test_everything_is_closed_whatever_fails(root: Hermes) -> None:
    """Each resource is closed although others raise, and all the errors are told together."""
    closed: list[str] = []

    def failing(name: str, *_: Any) -> Iterator[str]:
        yield name
        closed.append(name)
        raise OSError(name)

    overrides = {name: providers.Resource(failing, name) for name in ("journal", "memory_manager")}
    me = root.override(**overrides).open("work")
    me.journal(), me.memory_manager()
    with pytest.raises(ExceptionGroup) as caught:
        me.close()
    assert sorted(map(str, caught.value.exceptions)) == sorted(closed) == ["journal", "memory_manager"]


def test_dependants_are_closed_first(root: Hermes) -> None:
    """The manager is shut down before the journal that it writes to is closed."""
    provider = RecordingProvider()
    me = root.override(memory_provider=provider).open("work")
    me.memory_manager().initialize_all("s1")
    assert me.memory_manager().sync_all("hello, I am Ada", "hello Ada", session_id="s1").durable
    me.close()
    assert [t["user"] for t in provider.named("sync_turn")] == ["hello, I am Ada"]
    assert provider.calls[-1][0] == "shutdown"


def test_forgetting_to_close_warns(root: Hermes) -> None:
    """A profile that is dropped while open says so."""
    opened = [root.open("work")]

    def forget() -> None:
        opened.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match="never closed"):
        forget()


def test_a_closed_profile_hands_out_nothing(root: Hermes) -> None:
    """After closing, asking for a part is an error, and closing again is none."""
    with root.open("work") as me:
        pass
    me.close()
    with pytest.raises(RuntimeError, match="closed"):
        me.memory_manager()


def test_threads_get_the_same_part(root: Hermes) -> None:
    """Eight threads that ask at once are handed one manager."""
    with root.open("work") as me:
        barrier, got = threading.Barrier(8), []

        def ask() -> None:
            barrier.wait()
            got.append(me.memory_manager())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(map(id, got))) == 1
