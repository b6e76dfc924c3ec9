"""When to try again: backoff of one session, and the circuit of one provider. Times are monotonic seconds."""

from __future__ import annotations

import random
from typing import Literal

import attrs

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
FAILURES_TO_OPEN = 5


@attrs.frozen
class Backoff:
    """Waits that double from *first* to *longest* seconds, spread by *rng* so that many do not try at once."""

    first: float = FIRST_WAIT
    longest: float = LONGEST_WAIT
    rng: random.Random = attrs.field(factory=random.Random)

    def wait(self, failures: int) -> float:
        """Seconds to wait after the *failures*-th failure in a row."""
        full = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        return full * (0.5 + self.rng.random() / 2)


@attrs.define
class Circuit:
    """Whether one provider is tried at all: open after five failures in a row, half-open when its wait is over."""

    backoff: Backoff
    failures: int = 0
    retry_at: float | None = None
    stuck_until: float = 0.0
    """Until when nothing is sent because a call has not returned."""
    last_error: str = ""

    def is_closed_at(self, now: float) -> bool:
        """Whether a record may be sent at *now*."""
        return now >= self.stuck_until and (self.retry_at is None or now >= self.retry_at)

    def is_well_at(self, now: float) -> bool:
        """Whether it takes records: it is not open, and no call hangs."""
        return not self.is_open and now >= self.stuck_until

    def due(self) -> float:
        """When a record may be sent."""
        return max(self.stuck_until, self.retry_at or 0.0)

    @property
    def is_open(self) -> bool:
        """Whether so many failed that only one is tried at a time."""
        return self.failures >= FAILURES_TO_OPEN

    def state_at(self, now: float) -> Literal["closed", "open", "half-open"]:
        """As status shows it."""
        if not self.is_open:
            return "closed"
        return "half-open" if self.is_closed_at(now) else "open"

    def failed(self, error: str, now: float) -> None:
        """One more record was refused."""
        self.failures += 1
        self.last_error = error
        if self.is_open:
            self.retry_at = now + self.backoff.wait(self.failures - FAILURES_TO_OPEN + 3)

    def succeeded(self) -> bool:
        """A record was taken; whether that closed the circuit."""
        was_open, self.failures, self.retry_at = self.is_open, 0, None
        return was_open

    def try_now(self) -> None:
        """Forget what there is to wait for."""
        self.retry_at, self.stuck_until = None, 0.0
