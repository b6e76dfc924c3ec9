"""Layers: which there are, which wins, and what is no layer at all."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
import yaml

from hermes.errors import ConfigError, HermesError, StoreUnavailable, UsageError
from hermes.profiles import Profile
from hermes.settings import Settings, active_provider, layers_of, load
from hermes.settings.schema import SECTIONS
from tests.settings.conftest import Write
from tests.support import give_to_nobody, unprivileged


def test_every_layer_wins_over_the_one_below_it(write: Write) -> None:
    """Packaged < common < config < local < .env < environment < command line."""
    said = "memory: {memory_char_limit: %d}"
    environ = {"HERMES__MEMORY__MEMORY_CHAR_LIMIT": "5"}
    steps = [
        ({}, {}, (), 2200),
        ({"common": said % 1}, {}, (), 1),
        ({"config": said % 2}, {}, (), 2),
        ({"local": said % 3}, {}, (), 3),
        ({"dotenv": "HERMES__MEMORY__MEMORY_CHAR_LIMIT=4"}, {}, (), 4),
        ({}, environ, (), 5),
        ({}, environ, ("memory.memory_char_limit=6",), 6),
    ]
    for files, env, overrides, limit in steps:
        profile = write(**files)
        assert load(profile, environ=env, overrides=overrides).memory.memory_char_limit == limit


def test_layers_merge_mappings_and_replace_all_else(write: Write) -> None:
    """Keys stand side by side; a list is the upper one's; an empty mapping takes nothing away."""
    profile = write(
        "memory: {provider: a, mem0: {x: 1, y: [1, 2]}}\nother: {k: 1}\n",
        local="memory: {mem0: {y: [3], z: {}}}\nother: {}\n",
    )
    settings = load(profile, environ={})
    assert settings.memory.provider == "a"
    assert settings.memory.providers == {"mem0": {"x": 1, "y": [3], "z": {}}}
    assert settings.merged["other"] == {"k": 1}


def test_the_packaged_defaults_are_those_of_the_schema(profile: Profile) -> None:
    """defaults.yaml and the attrs classes say the same, and the file lists every key."""
    bare = load(profile, environ={})
    assert attrs.evolve(bare, merged={}) == Settings(profile=profile)
    text = yaml.safe_load((Path(load.__code__.co_filename).parent / "defaults.yaml").read_text())
    of_plugins = {"providers", "provider_timeouts", "by_name"}
    for section, schema in SECTIONS.items():
        fields = {field.name for field in attrs.fields(schema) if field.default is not None} - of_plugins
        assert fields == set(text[section])


def test_reading_creates_nothing(root: Path) -> None:
    """A profile that does not exist yet has settings, and still does not exist."""
    home = root / "profiles" / "new"
    assert load(Profile("new", root, home, "test"), environ={}).memory.provider is None
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "active"),
    [
        ({}, "local"),
        ({"config": ""}, None),
        ({"config": "memory:\n"}, None),
        ({"config": "memory: {provider: }"}, None),
        ({"config": "memory: {provider: ''}"}, None),
        ({"config": "memory: {provider: none}"}, None),
        ({"config": "memory: {provider: builtin}"}, None),
        ({"config": "memory: {provider: mem0}"}, "mem0"),
        ({"common": "memory: {provider: mem0}"}, "mem0"),
        ({"local": "memory: {write_approval: true}"}, "local"),
        ({"dotenv": "HERMES__MEMORY__PROVIDER=none"}, None),
    ],
)
def test_which_provider_is_on(write: Write, files: dict[str, str], active: str | None) -> None:
    """No config.yaml means ``local``; one that does not choose, or chooses nothing, means none."""
    assert active_provider(load(write(**files), environ={})) == active


def test_only_names_with_two_underscores_are_settings(write: Write) -> None:
    """``HERMES_HOME`` and its like set nothing; names count in any case."""
    environ = {"HERMES_HOME": "/x", "HERMES_MEMORY__PROVIDER": "no", "Hermes__Memory__Nudge_Interval": "3"}
    settings = load(write(), environ=environ)
    assert settings.memory.nudge_interval == 3
    assert set(settings.merged) == {
        "memory",
        "journal",
        "plugins",
        "context",
        "model",
        "display",
        "tools",
        "local",
    }


def test_secrets_in_dotenv_are_no_settings(write: Write) -> None:
    """Only HERMES__ names of .env are settings, ``export`` or not."""
    profile = write(dotenv="OPENAI_API_KEY=sk-1\nexport HERMES__MODEL__BASE_URL='http://x'\n")
    settings = load(profile, environ={})
    assert settings.model.base_url == "http://x"
    assert "sk-1" not in repr(settings.merged)


@pytest.mark.parametrize(
    "name", ["HERMES__", "HERMES__MEMORY", "HERMES__MEMORY__", "HERMES____X", "HERMES__A____B"]
)
def test_a_malformed_name_is_reported_and_ignored(profile: Profile, name: str) -> None:
    """One warning, and everything goes on."""
    settings = load(profile, environ={name: "x"})
    assert [(problem.key, problem.fatal) for problem in settings.warnings] == [(name, False)]


def test_a_name_and_a_longer_one(profile: Profile) -> None:
    """Where one variable sets a value and another something below it, the longer one holds and it is said."""
    environ = {"HERMES__MEMORY__MEM0": "x", "HERMES__MEMORY__MEM0__TOP_K": "5"}
    settings = load(profile, environ=environ)
    assert settings.memory.providers == {"mem0": {"top_k": "5"}}
    assert [problem.key for problem in settings.warnings] == ["HERMES__MEMORY__MEM0"]


def test_values_from_text_are_converted_by_their_type(profile: Profile) -> None:
    """A number, a switch, a list, a duration and a size come out of text; a text of digits stays text."""
    environ = {
        "HERMES__MEMORY__MEMORY_CHAR_LIMIT": " 10 ",
        "HERMES__MEMORY__REDACT": "0",
        "HERMES__PLUGINS__DISABLED": "a, b,,c",
        "HERMES__JOURNAL__MAX_AGE": "12h",
        "HERMES__JOURNAL__MAX_SIZE": "2MiB",
        "HERMES__MODEL__NAME": "123456",
        "HERMES__MEMORY__TIMEOUTS__HOOK": "1.5",
    }
    settings = load(profile, environ=environ)
    assert settings.memory.memory_char_limit == 10
    assert settings.memory.redact is False
    assert settings.plugins.disabled == ("a", "b", "c")
    assert settings.journal.max_age == 12 * 3600
    assert settings.journal.max_size == 2 << 20
    assert settings.model.name == "123456"
    assert settings.memory.timeouts.hook == 1.5
    assert settings.merged["memory"]["memory_char_limit"] == 10
    assert settings.merged["plugins"]["disabled"] == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["", "x", "=1", "a.=1", ".a=1", "a..b=1"])
def test_an_override_that_is_none(profile: Profile, text: str) -> None:
    """``--set`` wants section.key=value."""
    with pytest.raises(UsageError):
        load(profile, environ={}, overrides=[text])


def test_overrides_from_code_are_values(profile: Profile) -> None:
    """A mapping, nested or dotted, has real values: a text for a number is a mistake."""
    settings = load(profile, environ={}, overrides={"memory.redact": False, "journal": {"max_size": 5}})
    assert (settings.memory.redact, settings.journal.max_size) == (False, 5)
    with pytest.raises(ConfigError):
        load(profile, environ={}, overrides={"memory": {"nudge_interval": "3"}})


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"- a\n- b\n", 1, "found a list"),
        (b"text\n", 1, "found a single value"),
        (b"memory:\n\tprovider: x\n", 2, "tab"),
        (b"memory:\n  provider: 'x\n", 3, "not YAML"),
        (b"a: 1\nmemory: {provider: [}\n", 2, "not YAML"),
        (b"memory: {}\nb: 1\nmemory: {}\n", 3, "twice"),
        (b"a: caf\xe9\n", 1, "UTF-8"),
        (b"a: 1\n---\nb: 2\n", 2, "document"),
        (b"a: 1\nb: \x07\n", 2, "does not allow"),
        (b"a: &a [*a]\n", None, "aliases"),
        (b"a: 2024-13-45\n", None, "cannot be read"),
        (b"[" * 3000, 1, "nest"),
        (b"a: !!python/name:os.system\n", 1, "python/name"),
    ],
)
@pytest.mark.parametrize("kind", ["config", "common", "local"])
def test_a_file_that_is_no_settings_file(
    write: Write, kind: str, content: bytes, line: int | None, what: str
) -> None:
    """It stops with the file and the line; it is never taken for an empty one."""
    profile = write()
    path = {
        "config": profile.paths.config,
        "common": profile.paths.common,
        "local": profile.paths.local_config,
    }[kind]
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(profile, environ={})
    problem = caught.value.problems[0]
    assert (problem.path, problem.fatal) == (path, True)
    assert what in problem.what
    if line:
        assert problem.line == line


def test_many_aliases_do_not_fill_the_memory(write: Write) -> None:
    """A small file whose aliases would grow beyond any memory is refused at once."""
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    with pytest.raises(ConfigError):
        load(write("l0: &l0 [x]\n" + levels), environ={})


@pytest.mark.parametrize(
    "content", [b"\xef\xbb\xbfmemory:\r\n  provider: x\r\n", b"memory:\r\n  provider: x"]
)
def test_byte_order_mark_and_line_ends_of_windows(write: Write, content: bytes) -> None:
    """Both are read as if they were not there."""
    assert load(write(content), environ={}).memory.provider == "x"


def test_what_cannot_be_read_is_not_empty(reachable: Path) -> None:
    """A file without permission, a folder in its place, a dangling link: each is named."""
    profile = Profile("default", reachable, reachable, "test")
    profile.paths.config.write_text("memory: {provider: x}\n")
    profile.paths.config.chmod(0)
    give_to_nobody(reachable)
    unprivileged(lambda: _must_name(profile))
    profile.paths.config.unlink()
    profile.paths.config.mkdir()
    _must_name(profile)
    profile.paths.config.rmdir()
    profile.paths.config.symlink_to(reachable / "gone")
    _must_name(profile)


def _must_name(profile: Profile) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        load(profile, environ={})
    assert caught.value.path == profile.paths.config


def test_a_home_that_is_a_file(root: Path) -> None:
    """Nothing is guessed: an error of ours names it."""
    (root / "profiles").mkdir()
    home = root / "profiles" / "work"
    home.write_text("")
    with pytest.raises(HermesError):
        load(Profile("work", root, home, "test"), environ={})


def test_existing_homes_are_understood(write: Write) -> None:
    """A home of another host opens as it is: its names are read as ours, the rest passes through."""
    profile = write(
        """\
_config_version: 12
model:
  default: some/model
  provider: openrouter
  context_length: 200000
memory:
  memory_enabled: yes
  provider: mem0
  flush_min_turns: 6
  external_prefetch_timeout: 30
  mem0: {host: 'http://x'}
context: {engine: compressor}
display: {skin: default, compact: false}
auxiliary: {vision: {provider: auto}}
agent: {disabled_toolsets: [memory], max_turns: 60}
terminal: {backend: local}
toolsets: [all]
plugins:
  enabled: [x]
  disabled: [y]
  hermes-memory-store: {db_path: a.db}
"""
    )
    settings = load(profile, environ={})
    assert settings.warnings == ()
    assert settings.memory.timeouts.prefetch == 30
    assert settings.tools.disabled == ("memory",)
    assert settings.model.name == "some/model"
    assert settings.plugins.by_name == {"hermes-memory-store": {"db_path": "a.db"}}
    assert settings.merged["agent"] == {"disabled_toolsets": ["memory"], "max_turns": 60}
    assert settings.merged["toolsets"] == ["all"]


def test_model_may_be_a_single_name(write: Write) -> None:
    """``model: name`` is that of other hosts; it stays as it is in the merged mapping."""
    settings = load(write("model: some/model\n"), environ={})
    assert settings.model.name == "some/model"
    assert settings.merged["model"] == "some/model"


def test_a_layer_above_beats_the_old_name_below(write: Write) -> None:
    """An old name counts as the new one in its own layer, no more."""
    profile = write("memory: {external_prefetch_timeout: 30}", local="memory: {timeouts: {prefetch: 1}}")
    assert load(profile, environ={}).memory.timeouts.prefetch == 1


def test_limits_of_one_provider(write: Write) -> None:
    """``memory.<name>.timeouts`` overrides the limits for that provider; its other keys there are its own."""
    profile = write(
        "memory: {timeouts: {hook: 9}, mem0: {timeouts: {prefetch: 2s, own: x}}, b: {timeouts: 5}}"
    )
    memory = load(profile, environ={}).memory
    assert (memory.timeouts_of("mem0").prefetch, memory.timeouts_of("mem0").hook) == (2.0, 9.0)
    assert memory.timeouts_of("b") == memory.timeouts_of("c") == memory.timeouts


def test_the_layers_are_named_from_the_lowest(write: Write) -> None:
    """A missing file is no layer."""
    profile = write("a: 1\n")
    assert [layer.kind for layer in layers_of(profile, environ={})] == [
        "default",
        "profile",
        "environment",
        "command",
    ]
