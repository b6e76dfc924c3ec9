"""Which entry a piece of text means."""

from __future__ import annotations

import pytest

from hermes.errors import EntryNotFound, EntryRefused
from hermes.memory.builtin.addressing import find
from hermes.memory.builtin.values import entry_id

ENTRIES = ["uses uv", "uses uv for work projects", "env — prod", "cafe\u0301 at 8", "says “hi”", "caf\udce9"]


@pytest.mark.parametrize(
    ("wanted", "entry"),
    [
        ("uses uv", "uses uv"),
        ("work projects", "uses uv for work projects"),
        ("env - prod", "env — prod"),
        ("env -- prod", "env — prod"),
        ("caf\u00e9 at", "cafe\u0301 at 8"),
        ('"hi"', "says “hi”"),
        ("uses  uv\nfor", "uses uv for work projects"),
        ("caf\ufffd", "caf\udce9"),
        (entry_id("memory", "env — prod"), "env — prod"),
    ],
)
def test_meant(wanted: str, entry: str) -> None:
    """A whole entry wins over parts; look-alikes and ids are tried where nothing matches as it stands."""
    assert find(ENTRIES, wanted, "memory") == entry


def test_several() -> None:
    """Part of several entries means none of them, and the error lists them."""
    with pytest.raises(EntryRefused) as info:
        find(["a one", "a two", "b"], "a ", "memory")
    assert info.value.entries == ("a one", "a two")


def test_lookalikes_must_be_unique_too() -> None:
    """Two entries that differ in a dash only are not guessed between."""
    with pytest.raises(EntryRefused):
        find(["a – b", "a — b"], "a - b", "memory")


def test_none() -> None:
    """The error lists what there is."""
    with pytest.raises(EntryNotFound) as info:
        find(["a"], "z", "memory")
    assert info.value.entries == ("a",)
