"""What a manager says of itself: frozen values for status and for the end."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hermes.memory.journal import JournalStats
from hermes.memory.latency import HookStats
from hermes.memory.registry import Refused, Registry
from hermes.memory.seat import Seat, State


@attrs.frozen
class SeatStatus:
    """One provider of a manager."""

    name: str
    external: bool
    state: State
    reason: str = ""
    """Why it failed, or what it is waiting for."""
    delivery: str = "accepted"
    tools: tuple[str, ...] = ()
    """The tools that the model is offered now."""
    tools_off: tuple[str, ...] = ()
    """Tools it has that are disabled."""
    stuck_in: str = ""
    """The member that has not returned within its limit; no calls are made on its lane."""
    stuck_since: float | None = None
    """Unix seconds."""
    circuit: str = "closed"
    undelivered: int = 0
    hooks: Mapping[str, HookStats] = attrs.field(factory=dict)
    """Calls since the manager was made, by member."""
    skipped: Mapping[str, int] = attrs.field(factory=dict)
    """Calls that were not made because an earlier one had not returned, by member."""

    @classmethod
    def of(cls, seat: Seat, registry: Registry, journal: JournalStats | None) -> SeatStatus:
        """The status of *seat*."""
        on = tuple(schema["name"] for owner, schema in registry.tools() if owner is seat)
        stuck = seat.stuck()
        health = journal.health.get(seat.name) if journal else None
        return cls(
            name=seat.name,
            external=seat.external,
            state=seat.state,
            reason=seat.reason,
            delivery="stored" if seat.stores else "accepted",
            tools=on,
            tools_off=tuple(name for name in seat.tools if name not in on),
            stuck_in=stuck[0] if stuck else "",
            stuck_since=stuck[1] if stuck else None,
            circuit=health.circuit if health else "closed",
            undelivered=journal.undelivered_by_provider.get(seat.name, 0) if journal else 0,
            hooks=seat.stats(),
            skipped=seat.skipped(),
        )

    def __str__(self) -> str:
        return f"{self.state}: {self.reason}" if self.reason else str(self.state)


@attrs.frozen
class RecallFigures:
    """How recall went: late answers that were used, late answers that were dropped."""

    used_late: int = 0
    dropped: int = 0
    timing_out: bool = False
    """True while the last recall was too late."""


@attrs.frozen
class ManagerStatus:
    """A manager at one moment."""

    profile: str
    home: str
    session_id: str
    agent_context: str
    writes: bool
    """False in a context whose turns are not kept, such as a job."""
    providers: tuple[SeatStatus, ...] = ()
    refused: tuple[Refused, ...] = ()
    recall: RecallFigures = attrs.field(factory=RecallFigures)
    skipped: Mapping[str, int] = attrs.field(factory=dict)
    """Turns and ends that were not handed over, by reason."""
    redacted: int = 0
    """Secrets that were masked."""
    journal: JournalStats | None = None
    """None while nothing was ever owed to a provider."""


@attrs.frozen
class ShutdownReport:
    """What the end left behind: nothing, where ``clean``."""

    undelivered: int = 0
    handed_over: int = 0
    dead: int = 0
    held: int = 0
    """Records that were in the memory of this process only, and are lost with it."""
    stuck: tuple[str, ...] = ()
    """Workers that did not end within the limit, and the delivery that did not return."""
    failed: Mapping[str, str] = attrs.field(factory=dict)
    """Providers whose ``shutdown`` failed or did not return, and how."""

    @property
    def clean(self) -> bool:
        """True if everything was delivered and everything has ended."""
        return not (self.undelivered or self.held or self.stuck or self.failed)
