"""Settings and secrets as plugins read and write them."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hermes.containers import OpenProfile
from hermes.errors import ConfigError, Unavailable, UsageError

Served = Callable[[str], ModuleType]
BEFORE = """\
# chosen by hand
memory:
  provider: notes   # mine
  notes:
    depth: 3
    old: gone soon

theirs:
  - 1
  - two
"""


@pytest.fixture
def config(served: Served, hermes_home: Path) -> Any:
    """``hermes_cli.config`` of a profile that has settings."""
    hermes_home.mkdir()
    (hermes_home / "config.yaml").write_text(BEFORE)
    return served("hermes_cli.config")


def changed_lines(home: Path) -> list[str]:
    """The lines of ``config.yaml`` that are not as they were: + and -."""
    import difflib

    after = (home / "config.yaml").read_text()
    lines = difflib.unified_diff(BEFORE.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def test_a_plugin_gets_all_layers_merged_and_plain(config: Any) -> None:
    """What is handed out holds defaults and foreign sections, in plain dicts and lists that are the caller's."""
    given = config.load_config()
    assert given["memory"]["provider"] == "notes"
    assert given["memory"]["memory_enabled"] is True
    assert given["theirs"] == [1, "two"]
    assert type(given) is dict
    given["theirs"].append("more")
    assert config.load_config()["theirs"] == [1, "two"]


def test_the_key_of_the_model_is_not_handed_out(config: Any, hermes_home: Path) -> None:
    """A setting that is typed as a secret is left out, and saving what was handed out does not remove it."""
    (hermes_home / "config.yaml").write_text("model:\n  name: m\n  api_key: sk-not-for-plugins\n")
    given = config.load_config()
    assert given["model"] == {"name": "m", "context_length": 128000}
    given["model"]["name"] = "other"
    config.save_config(given)
    assert "api_key: sk-not-for-plugins" in (hermes_home / "config.yaml").read_text()


def test_only_what_differs_is_written(config: Any, hermes_home: Path) -> None:
    """A change, an addition and a removal touch their own lines; comments and order stay."""
    given = config.load_config()
    given["memory"]["notes"]["depth"] = 4
    given["memory"]["notes"]["where"] = {"path": Path("/data")}
    del given["memory"]["notes"]["old"]
    config.save_config(given)
    assert changed_lines(hermes_home) == [
        "-    depth: 3",
        "-    old: gone soon",
        "+    depth: 4",
        "+    where:",
        "+      path: /data",
    ]


def test_saving_what_was_given_writes_nothing(config: Any, hermes_home: Path) -> None:
    """No change, no write: the file keeps its bytes and its time, and no defaults are put in."""
    stat = (hermes_home / "config.yaml").stat()
    config.save_config(config.load_config())
    config.save_config(copy.deepcopy(config.load_config()))
    assert changed_lines(hermes_home) == []
    assert (hermes_home / "config.yaml").stat().st_mtime_ns == stat.st_mtime_ns


def test_what_somebody_else_wrote_meanwhile_stays(config: Any, hermes_home: Path) -> None:
    """A save is made against the file as it is now: a key that the plugin did not touch is not put back."""
    given = config.load_config()
    (hermes_home / "config.yaml").write_text(BEFORE.replace("depth: 3", "depth: 9") + "new: 1\n")
    config.load_config()  # another part of the plugin looks
    given["memory"]["provider"] = "other"
    config.save_config(given)
    assert changed_lines(hermes_home) == [
        "-  provider: notes   # mine",
        "+  provider: other   # mine",
        "-    depth: 3",
        "+    depth: 9",
        "+new: 1",
    ]


def test_a_change_and_back_again(config: Any, hermes_home: Path) -> None:
    """A value that is set back to what it was first is written again."""
    given = config.load_config()
    given["memory"]["notes"]["depth"] = 4
    config.save_config(given)
    given["memory"]["notes"]["depth"] = 3
    config.save_config(given)
    assert changed_lines(hermes_home) == []


def test_true_is_not_one(config: Any, hermes_home: Path) -> None:
    """A value of another type is another value."""
    given = config.load_config()
    given["memory"]["notes"]["depth"] = 1
    config.save_config(given)
    given["memory"]["notes"]["depth"] = True
    config.save_config(given)
    assert "+    depth: true" in changed_lines(hermes_home)


def test_a_copy_counts_and_a_part_is_merged(config: Any, hermes_home: Path) -> None:
    """A deep copy of what was given may lack a key, which is removed; a part of it removes nothing."""
    other = copy.deepcopy(config.load_config())
    del other["memory"]["notes"]["old"]
    config.save_config(other)
    assert changed_lines(hermes_home) == ["-    old: gone soon"]
    config.save_config({"memory": {"provider": "part"}})
    assert changed_lines(hermes_home)[:2] == ["-  provider: notes   # mine", "+  provider: part   # mine"]
    assert "depth: 3" in (hermes_home / "config.yaml").read_text()


def test_a_default_that_is_left_out_is_no_removal(config: Any, hermes_home: Path) -> None:
    """A key that was given and never stood in the file is not removed from anywhere."""
    given = config.load_config()
    del given["memory"]["timeouts"], given["journal"]
    config.save_config(given)
    assert changed_lines(hermes_home) == []


def test_what_cannot_be_saved_is_refused_whole(config: Any, hermes_home: Path) -> None:
    """A value that no settings file holds, or that its key does not take, leaves the file as it is."""
    given = config.load_config()
    given["memory"]["provider"] = "other"
    given["memory"]["notes"]["depth"] = object()
    with pytest.raises(UsageError, match=r"memory\.notes\.depth"):
        config.save_config(given)
    given["memory"]["notes"]["depth"] = 5
    given["memory"]["memory_char_limit"] = "many"
    with pytest.raises(ConfigError, match="memory_char_limit"):
        config.save_config(given)
    assert changed_lines(hermes_home) == []


def test_a_home_that_does_not_exist_yet(served: Served, hermes_home: Path) -> None:
    """The first save makes the profile's home and its settings file, private."""
    config = served("hermes_cli.config")
    given = config.load_config()
    given["memory"]["provider"] = "notes"
    config.save_config(given)
    assert (hermes_home / "config.yaml").read_text() == "memory:\n  provider: notes\n"
    assert (hermes_home / "config.yaml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("a", "b"), None),
        (("a", "c"), "default"),
        (("x",), "default"),
        (("a", "b", "d"), "default"),
        ((), {"a": {"b": None}}),
    ],
)
def test_looking_a_key_up(config: Any, keys: tuple[str, ...], value: Any) -> None:
    """None in the settings is None; a path that leads nowhere is the default."""
    assert config.cfg_get({"a": {"b": None}}, *keys, default="default") == value
    assert config.cfg_get(None, "a", default=1) == 1


def test_secrets_are_those_of_the_profile(
    served: Served, hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved value stands in ``.env``, quoted and private, and is found at once, before that of the process."""
    config, scope = served("hermes_cli.config"), served("agent.secret_scope")
    config.save_env_value("NOTES_KEY", "a b#c")
    assert (hermes_home / ".env").read_text() == "NOTES_KEY='a b#c'\n"
    assert (hermes_home / ".env").stat().st_mode & 0o777 == 0o600
    assert scope.get_secret("NOTES_KEY") == config.get_env_value_prefer_dotenv("NOTES_KEY") == "a b#c"
    assert config.load_env() == {"NOTES_KEY": "a b#c"}
    assert "NOTES_KEY" not in os.environ
    monkeypatch.setenv("NOTES_OTHER", "from the process")
    assert config.get_env_value("NOTES_OTHER") == "from the process"
    assert scope.get_secret("NOTES_OTHER", "none") == "none"
    assert config.remove_env_value("NOTES_KEY") is True
    assert config.remove_env_value("NOTES_KEY") is False
    assert scope.get_secret("NOTES_KEY") is None
    with pytest.raises(UsageError, match="line break"):
        config.save_env_value("NOTES_KEY", "a\nb")


def test_a_scope_stands_in_the_place_of_the_profile(served: Served) -> None:
    """A mapping that was put in place is all that ``get_secret`` sees, until it is taken away."""
    scope = served("agent.secret_scope")
    served("hermes_cli.config").save_env_value("A", "profile")
    token = scope.set_secret_scope({"B": "scope"})
    assert (scope.get_secret("A"), scope.get_secret("B")) == (None, "scope")
    assert scope.current_secret_scope() == {"B": "scope"}
    scope.reset_secret_scope(token)
    assert (scope.get_secret("A"), scope.get_secret("B", "")) == ("profile", "")
    assert scope.is_multiplex_active() is False


def test_nothing_crosses_to_another_home(served: Served, hermes_profile: OpenProfile, tmp_path: Path) -> None:
    """With another home set over the profile's, paths follow it; settings and secrets are refused."""
    constants, config, scope = (
        served(name) for name in ("hermes_constants", "hermes_cli.config", "agent.secret_scope")
    )
    token = constants.set_hermes_home_override(tmp_path / "other")
    assert constants.get_hermes_home() == tmp_path / "other"
    for call in (config.load_config, config.load_env, lambda: scope.get_secret("A")):
        with pytest.raises(Unavailable, match="profile 'default'"):
            call()
    with pytest.raises(Unavailable):
        config.save_env_value("A", "b")
    constants.reset_hermes_home_override(token)
    assert constants.get_hermes_home() == hermes_profile.paths().home
    assert scope.build_profile_secret_scope(hermes_profile.paths().home) == {}
    with pytest.raises(Unavailable):
        scope.build_profile_secret_scope(tmp_path / "other")
    with_own = constants.set_hermes_home_override(str(hermes_profile.paths().home))
    assert config.load_env() == {}
    constants.reset_hermes_home_override(with_own)
