"""How long the calls of a provider took and how they ended: small histograms that can be added up."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

_SMALLEST = 1e-5
_RATIO = 1.25
_LOG_RATIO: float = math.log(_RATIO)


@attrs.define
class Latency:
    """Durations in logarithmic buckets: a quantile is right to one eighth, however many were added."""

    buckets: dict[int, int] = attrs.field(factory=dict)

    def add(self, seconds: float) -> None:
        """Count one call of *seconds*."""
        place = 0 if seconds <= _SMALLEST else math.ceil(math.log(seconds / _SMALLEST) / _LOG_RATIO)
        self.buckets[place] = self.buckets.get(place, 0) + 1

    @property
    def count(self) -> int:
        """How many calls were added."""
        return sum(self.buckets.values())

    def quantile(self, share: float) -> float | None:
        """Seconds within which *share* (0.5 for the median) of the calls returned; None if there were none."""
        wanted = share * self.count
        seen = 0
        for place in sorted(self.buckets):
            seen += self.buckets[place]
            if seen >= wanted:
                return float(_SMALLEST * _RATIO ** (place - 0.5))
        return None

    def merge(self, other: Latency) -> None:
        """Add what *other* counted."""
        for place, count in other.buckets.items():
            self.buckets[place] = self.buckets.get(place, 0) + count


@attrs.define
class HookStats:
    """One hook of one provider: durations, errors, calls given up, and when it last went well (Unix seconds)."""

    latency: Latency = attrs.field(factory=Latency)
    calls: int = 0
    errors: int = 0
    timeouts: int = 0
    last_ok: float | None = None
    last_error: str = ""

    def merge(self, other: HookStats) -> None:
        """Add what *other*, which is younger, counted."""
        self.latency.merge(other.latency)
        self.calls += other.calls
        self.errors += other.errors
        self.timeouts += other.timeouts
        self.last_ok = max(filter(None, (self.last_ok, other.last_ok)), default=None)
        self.last_error = other.last_error or self.last_error

    def as_dict(self) -> Mapping[str, object]:
        """As printed: calls, errors, timeouts, median and p99 in seconds, last success, last error."""
        return {
            "calls": self.calls,
            "errors": self.errors,
            "timeouts": self.timeouts,
            "median": self.latency.quantile(0.5),
            "p99": self.latency.quantile(0.99),
            "last_ok": self.last_ok,
            "last_error": self.last_error,
        }
