"""Lengths of time and sizes in words."""

from __future__ import annotations

import pytest

from hermes import amounts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("15 m", 900.0),
        ("1.5h", 5400.0),
        (" 30d ", 2592000.0),
        ("2W", 1209600.0),
        ("250ms", 0.25),
    ],
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    """A number and a unit, with or without space, in any case."""
    assert amounts.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("1 GiB", 1 << 30), ("0b", 0), ("1.5kB", 1500)]
)
def test_sizes(text: str, size: int) -> None:
    """Powers of ten, and of two where the unit says so."""
    assert amounts.size(text) == size


@pytest.mark.parametrize("text", ["", "5", "d", "-5d", "5 parsecs", "1e3s", "٣d", "5d 3h", "NaNs"])
def test_anything_else_is_none(text: str) -> None:
    """What is no amount is not guessed at."""
    assert amounts.seconds(text) is None
    assert amounts.size(text) is None
