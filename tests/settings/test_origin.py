"""Origin: which layer says a value, and in which line."""

from __future__ import annotations

from hermes.settings import layers_of, origin
from tests.settings.conftest import Write


def test_every_layer_that_says_it_the_winner_first(write: Write) -> None:
    """Each with its source, its line and its own value."""
    profile = write(
        "memory:\n  timeouts:\n    hook: 7\n",
        common="memory: {timeouts: {hook: 6}}\n",
        dotenv="# x\nHERMES__MEMORY__TIMEOUTS__HOOK=8\n",
    )
    layers = layers_of(
        profile, environ={"HERMES__MEMORY__TIMEOUTS__HOOK": "9"}, overrides=["memory.timeouts.hook=10"]
    )
    said = [(o.kind, o.line, str(o.value)) for o in origin(layers, "memory.timeouts.hook")]
    assert said == [
        ("command", None, "10"),
        ("environment", None, "9"),
        ("dotenv", 2, "8"),
        ("profile", 3, "7"),
        ("common", 1, "6"),
        ("default", None, "5"),
    ]
    assert str(origin(layers, "memory.timeouts.hook")[3]) == f"{profile.paths.config}:3"


def test_an_old_name_is_where_its_value_stands(write: Write) -> None:
    """The line is that of the key as the file has it."""
    profile = write("memory:\n  external_prefetch_timeout: 30\nagent:\n  disabled_toolsets: [memory]\n")
    layers = layers_of(profile, environ={})
    assert origin(layers, "memory.timeouts.prefetch")[0].line == 2
    assert origin(layers, "tools.disabled")[0].line == 4


def test_keys_that_are_not_said(write: Write) -> None:
    """Nothing is found for them; keys that hold dots are given one by one; digits find a number."""
    layers = layers_of(write("a: {b.c: 1, 5: x}\n"), environ={})
    assert origin(layers, "a.b.c") == []
    assert origin(layers, ("a", "b.c"))[0].value == 1
    assert origin(layers, "a.5")[0].value == "x"
    assert origin(layers, "a.b.c.d") == []
