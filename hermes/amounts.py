"""Lengths of time and sizes as a person writes them: ``90s``, ``30d``, ``500MB``. Standard library only."""

from __future__ import annotations

import re

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", re.ASCII | re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_BYTES |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


def seconds(text: str) -> float | None:
    """The seconds that *text* (``15m``, ``12h``) stands for; None where it is no length of time."""
    amount = _AMOUNT.fullmatch(text.strip())
    unit = _SECONDS.get(amount[2].lower()) if amount else None
    return float(amount[1]) * unit if amount and unit else None


def size(text: str) -> int | None:
    """The bytes that *text* (``500MB``, ``1GiB``) stands for; None where it is no size."""
    amount = _AMOUNT.fullmatch(text.strip())
    unit = _BYTES.get(amount[2].lower()) if amount else None
    return int(float(amount[1]) * unit) if amount and unit else None
