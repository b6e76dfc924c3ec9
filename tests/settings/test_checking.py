"""Wrong types stop with every mistake at once; unknown keys are one warning each; both say where."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import yaml

from hermes.errors import ConfigError
from hermes.profiles import Profile
from hermes.secret import Secret
from hermes.settings import check, load
from hermes.settings.schema import SECTIONS, Duration, Retention, Size, Timeouts
from tests.settings.conftest import Write

MADE = {"providers", "provider_timeouts", "by_name", "timeouts", "retention"}
NESTED = {"memory.timeouts": Timeouts, "local.retention": Retention}


def keys_by_type() -> list[tuple[str, Any]]:
    """Every key of ours, dotted, with its declared type."""
    found = []
    for section, schema in {**SECTIONS, **NESTED}.items():
        attrs.resolve_types(schema)
        found += [(f"{section}.{f.name}", f.type) for f in attrs.fields(schema) if f.name not in MADE]
    return found


def nested(key: str, value: Any) -> str:
    """A file that sets *key*, a line per part, the value in the last."""
    *above, last = key.split(".")
    lines = [f"{'  ' * depth}{part}:" for depth, part in enumerate(above)]
    shown = yaml.safe_dump([value], default_flow_style=True, width=10**6).strip()[1:-1]
    return "\n".join([*lines, f"{'  ' * len(above)}{last}: {shown}"]) + "\n"


WRONG: dict[Any, list[Any]] = {
    bool: [None, 1, 0, 1.5, "maybe", "1", "", [], {}, [True]],
    int: [None, True, 1.5, "5", "abc", "", [], {}, -1, 10**30, float("inf"), float("nan")],
    float: [None, True, "5", "abc", [], {}],
    Duration: [
        None,
        True,
        "5",
        "abc",
        "5 parsecs",
        "-3s",
        "",
        [],
        {},
        -1,
        float("inf"),
        float("nan"),
        1e300,
        "9" * 30 + "d",
    ],
    Size: [None, True, 1.5, "5", "abc", "5 parsecs", "", [], {}, -1, 10**30],
    str: [None, True, 5, 1.5, [], {}],
    str | None: [True, 5, 1.5, [], {}],
    Secret | None: [True, 5, [], {}],
    tuple[str, ...]: [None, True, 5, "text", {}, [1], [None], [[]], ["a", 2]],
}


@pytest.mark.parametrize(("key", "kind"), keys_by_type())
def test_wrong_types_at_every_key(write: Write, key: str, kind: Any) -> None:
    """Each stops with 78 and names file, line and key; no value is bent into shape."""
    for wrong in WRONG.get(kind, [None, 5, 1.5, "nothing like it", [], {}]):
        profile = write(nested(key, wrong))
        with pytest.raises(ConfigError) as caught:
            load(profile, environ={})
        assert caught.value.exit_code == 78
        (problem,) = caught.value.problems
        assert problem.key.partition("[")[0] == key, wrong
        assert (problem.path, problem.line) == (profile.paths.config, key.count(".") + 1)
        assert [found.key for found in check(profile, environ={})] == [problem.key]


@pytest.mark.parametrize(("key", "kind"), keys_by_type())
def test_wrong_texts_at_every_key(profile: Profile, key: str, kind: Any) -> None:
    """A text from the environment that its type does not take names the variable; text keys take any."""
    name = "HERMES__" + key.upper().replace(".", "__")
    if kind in (str | None, Secret | None, tuple[str, ...]) and key != "memory.provider":
        load(profile, environ={name: "../any thing"})
        return
    with pytest.raises(ConfigError) as caught:
        load(profile, environ={name: "../any thing"})
    assert caught.value.problems[0].key == key
    assert name in caught.value.problems[0].what


@pytest.mark.parametrize("section", [*SECTIONS])
@pytest.mark.parametrize("wrong", ["[a]", "text", "5", "true", "[]", "''"])
def test_a_section_that_is_no_mapping(write: Write, section: str, wrong: str) -> None:
    """It is refused by name; a layer above it does not hide it."""
    if (section, wrong) in {("model", "text"), ("model", "''")}:
        return  # ``model: name`` is how other hosts write it
    profile = write(f"a: 1\n{section}: {wrong}\n", local=f"{section}: {{}}\n")
    with pytest.raises(ConfigError) as caught:
        load(profile, environ={})
    assert [(p.key, p.line) for p in caught.value.problems] == [(section, 2)]


@pytest.mark.parametrize("section", [*SECTIONS])
def test_a_section_with_nothing_below_it(write: Write, section: str) -> None:
    """``section:`` alone says nothing and takes nothing away from the layers below."""
    profile = write(f"{section}:\n", common="memory: {provider: x}\n")
    settings = load(profile, environ={})
    assert settings.memory.provider == "x"
    assert settings.merged["memory"]["memory_char_limit"] == 2200


@pytest.mark.parametrize("word", ["true", "yes", "on", "'true'", "'Yes'", "'on'"])
def test_words_for_true(write: Write, word: str) -> None:
    """A boolean, or exactly one of the words."""
    assert load(write(f"memory: {{write_approval: {word}}}"), environ={}).memory.write_approval is True


@pytest.mark.parametrize("word", ["false", "no", "off", "'false'", "'No'", "'off'"])
def test_words_for_false(write: Write, word: str) -> None:
    """``"false"`` is never True."""
    assert load(write(f"memory: {{memory_enabled: {word}}}"), environ={}).memory.memory_enabled is False


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("5", 5), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("12h", 43200), ("30d", 2592000)],
)
def test_durations(write: Write, written: str, seconds: float) -> None:
    """Seconds, or a number with its unit."""
    assert load(write(f"journal: {{max_age: {written}}}"), environ={}).journal.max_age == seconds


@pytest.mark.parametrize(
    ("written", "size"), [("5", 5), ("500MB", 500_000_000), ("1GiB", 1 << 30), ("1.5 KiB", 1536)]
)
def test_sizes(write: Write, written: str, size: int) -> None:
    """Bytes, or a number with its unit."""
    assert load(write(f"journal: {{max_size: {written}}}"), environ={}).journal.max_size == size


def test_switches_that_yaml_reads_as_booleans(write: Write) -> None:
    """``memory_notifications: off`` is the choice "off", though YAML 1.1 reads false."""
    for word in ("off", "on", "verbose"):
        settings = load(write(f"display: {{memory_notifications: {word}}}"), environ={})
        assert settings.display.memory_notifications == word


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "a..b", "x" * 65, "a b", "é"]
)
def test_a_provider_is_a_plain_name(write: Write, name: str) -> None:
    """A path, absolute or not, is refused before anything is looked up by it."""
    for key in ("memory: {provider", "context: {engine"):
        with pytest.raises(ConfigError, match="never a path"):
            load(write(f"{key}: {name!r}}}"), environ={})


def test_every_mistake_at_once(write: Write) -> None:
    """One pass reports them all: types and bounds, in files, .env and the environment, with their lines."""
    profile = write(
        "memory:\n  memory_char_limit: abc\n  user_char_limit: 0\n  redact: maybe\nplugins: [a]\n",
        local="model: {base_url: 5}\n",
        dotenv="A=1\nHERMES__MEMORY__NUDGE_INTERVAL=often\n",
    )
    with pytest.raises(ConfigError) as caught:
        load(profile, environ={"HERMES__JOURNAL__MAX_AGE": "long"})
    found = {(p.key, p.path.name if p.path else None, p.line) for p in caught.value.problems}
    assert found == {
        ("memory.memory_char_limit", "config.yaml", 2),
        ("memory.user_char_limit", "config.yaml", 3),
        ("memory.redact", "config.yaml", 4),
        ("plugins", "config.yaml", 5),
        ("model.base_url", "config.local.yaml", 1),
        ("memory.nudge_interval", ".env", 2),
        ("journal.max_age", None, None),
    }
    checked = check(profile, environ={"HERMES__JOURNAL__MAX_AGE": "long"})
    assert {(p.key, p.path.name if p.path else None, p.line) for p in checked} == found


def test_what_a_layer_above_mends_stops_nothing_and_is_reported(write: Write) -> None:
    """The value in force is sound, so commands run; check still names the line."""
    profile = write("memory: {memory_char_limit: abc}\n", local="memory: {memory_char_limit: 5}\n")
    assert load(profile, environ={}).memory.memory_char_limit == 5
    assert [problem.line for problem in check(profile, environ={})] == [1]


def test_unknown_keys_warn_and_stop_nothing(write: Write) -> None:
    """Each is one warning with what was most likely meant, where there is such a thing."""
    profile = write(
        "memory:\n  memory_char_limt: 5\n  timeouts: {prefech: 1}\n  zzz: 1\nmemroy: {}\n"
        "journal: {max_ages: 1}\nPlugins: {}\nlocal: {scop: 1, retention: {max_turn: 1}}\n"
    )
    warnings = load(profile, environ={}).warnings
    assert [
        (w.key, w.line, w.fatal, w.what.partition("mean ")[2])
        for w in sorted(warnings, key=lambda w: w.line or 0)
    ] == [
        ("memory.memory_char_limt", 2, False, "'memory_char_limit'?)"),
        ("memory.timeouts.prefech", 3, False, "'prefetch'?)"),
        ("memory.zzz", 4, False, ""),
        ("memroy", 5, False, "'memory'?)"),
        ("journal.max_ages", 6, False, "'max_age'?)"),
        ("Plugins", 7, False, "'plugins'?)"),
        ("local.scop", 8, False, "'scope'?)"),
        ("local.retention.max_turn", 8, False, "'max_turns'?)"),
    ]
    assert {problem.key for problem in check(profile, environ={})} == {w.key for w in warnings}


def test_check_goes_on_after_a_file_that_cannot_be_read(write: Write) -> None:
    """One broken file does not hide the mistakes of the others."""
    profile = write(
        "a: [\n", common="- x\n", local="memory: {redact: 5}\n", dotenv="HERMES__MEMORY__REDACT='x\n"
    )
    names = [problem.path.name for problem in check(profile, environ={}) if problem.path]
    assert names == ["common.yaml", "config.yaml", "config.local.yaml", ".env"]


def test_check_names_every_key_given_twice(write: Write) -> None:
    """With the line of the second; in a section of another host it stops nothing, and the last one counts."""
    profile = write("a: 1\na: 2\nb:\n  c: 1\n  c: 2\n")
    problems = check(profile, environ={})
    assert [(p.key, p.line, p.fatal) for p in problems] == [("a", 2, False), ("c", 5, False)]
    assert load(profile, environ={}).merged["b"] == {"c": 2}
    (own,) = check(write("memory:\n  redact: true\n  redact: false\n"), environ={})
    assert (own.key, own.line, own.fatal) == ("redact", 3, True)


def test_no_message_shows_a_secret(write: Write) -> None:
    """A secret of the wrong kind is not quoted, and one of the right kind never shows itself."""
    with pytest.raises(ConfigError) as caught:
        load(write("model: {api_key: [topsecret]}\nmemory: {redact: 5}"), environ={})
    assert "topsecret" not in str(caught.value)
    settings = load(write("model: {api_key: topsecret}\nmemory: {mem0: {api_key: topsecret}}"), environ={})
    assert "topsecret" not in repr(settings)
    assert settings.model.api_key is not None
    assert settings.model.api_key.reveal() == "topsecret"
    assert "api_key" not in settings.merged["model"]


def test_half_a_character_is_refused(profile: Profile) -> None:
    """A value that is no Unicode text, as an undecodable variable gives it, is a mistake and no crash."""
    with pytest.raises(ConfigError, match="surrogate"):
        load(profile, environ={"HERMES__MODEL__NAME": "x\udcff"})
