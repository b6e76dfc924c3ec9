"""The providers of one manager: the built-in one first, one external one at most, and who has which tool."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from typing import Any

import attrs

from hermes.memory.coroutines import Coroutines
from hermes.memory.lanes import CallStillRunning, LimitSet, describe
from hermes.memory.provider import BUILTIN
from hermes.memory.schemas import BUILTIN_TOOL, CORE_TOOLS, DisabledTools, usable_tools
from hermes.memory.seat import Seat, State


@attrs.frozen
class Refused:
    """A provider that is not in the manager, and why."""

    name: str
    reason: str


class Registry:
    """The seats, in order."""

    def __init__(
        self,
        limits: LimitSet,
        disabled_tools: Collection[str],
        loop: Coroutines,
        log: logging.Logger | None = None,
    ) -> None:
        self.log = log or logging.getLogger("hermes.memory")
        self._limits = limits
        self._loop = loop
        self._lock = threading.Lock()
        self._seats: tuple[Seat, ...] = ()
        self._external: tuple[Seat, ...] = ()
        self._refused: list[Refused] = []
        self._noted: set[tuple[str, str, str]] = set()
        self.disabled = DisabledTools(disabled_tools)

    def __iter__(self) -> Iterator[Seat]:
        return iter(self._seats)

    @property
    def external(self) -> tuple[Seat, ...]:
        """The seats of outside providers: none or one."""
        return self._external

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Providers that were not taken."""
        return tuple(self._refused)

    def get(self, name: str) -> Seat | None:
        """The seat of the provider called *name*."""
        return next((seat for seat in self._seats if seat.name == name), None)

    def add(self, provider: Any, name: str = "") -> bool:
        """Give *provider* a seat; False, with a warning and nothing kept of it, if it cannot have one.

        Without a *name* it is known by its own.
        """
        try:
            own = provider.name
        except Exception as exc:  # noqa: BLE001 - a property of a foreign class may raise anything
            return self._refuse(name or type(provider).__name__, f"its name cannot be read: {describe(exc)}")
        if not isinstance(own, str) or not own.strip():
            return self._refuse(name or type(provider).__name__, f"its name is {own!r}, expected a text")
        name = name or own
        if reason := self._conflict(name):
            return self._refuse(name, reason)
        seat = Seat(provider, name, self._limits, self._loop)
        try:
            self.set_tools(seat, seat.ask("get_tool_schemas", within=self._limits.hook))
        except Exception as exc:  # noqa: BLE001 - whatever it is, the provider gets no seat for it
            seat.turn.close()
            return self._refuse(name, f"its tools cannot be read: {describe(exc)}")
        with self._lock:
            if reason := self._conflict(name):
                seat.turn.close()
                return self._refuse(name, reason)
            self._seats = (*self._seats, seat) if seat.external else (seat, *self._seats)
            self._external = tuple(seat for seat in self._seats if seat.external)
        return True

    def note_failure(self, name: str, reason: str) -> None:
        """Remember that the provider called *name* could not even be made."""
        self._refuse(name, reason)

    def note(self, seat: Seat, what: str, error: BaseException) -> None:
        """Log a failure of a provider: once as a warning, repeated ones for who looks closely."""
        mark = (seat.name, what, type(error).__name__)
        counted = mark in self._noted or isinstance(error, CallStillRunning)
        level = logging.DEBUG if counted else logging.WARNING
        self._noted.add(mark)
        self.log.log(level, "memory provider %r: %s: %s", seat.name, what, describe(error))

    def set_tools(self, seat: Seat, schemas: Any) -> None:
        """Offer the tools of *schemas* for *seat*; what cannot be offered is warned about."""
        taken = {name for other in self._seats if other is not seat for name in other.tools}
        core = CORE_TOOLS if seat.external else CORE_TOOLS - {BUILTIN_TOOL}
        tools, refused = usable_tools(schemas, taken=taken, core=core)
        if tools != seat.tools:
            for reason in refused:
                self.log.warning("memory provider %r: %s; it is not offered", seat.name, reason)
        seat.tools = tools

    def tools(self) -> Iterator[tuple[Seat, dict[str, Any]]]:
        """What is offered to the model now, with the seat that answers."""
        for seat in self._seats:
            if seat.usable:
                for name, schema in seat.tools.items():
                    if not self.disabled.refuses(name, seat.name, external=seat.external):
                        yield seat, schema

    def owner_of(self, tool: str) -> Seat | None:
        """The seat that has *tool*, whether or not it is offered now."""
        return next((seat for seat in self._seats if tool in seat.tools), None)

    def ready(self) -> list[str]:
        """Names of the outside providers that can take deliveries now."""
        return [seat.name for seat in self._seats if seat.external and seat.usable]

    def close_lanes(self) -> list[Seat]:
        """No more calls; the seats, for waiting until their workers are gone."""
        for seat in self._seats:
            seat.state = State.CLOSED
            seat.turn.close()
            seat.delivery.close()
        return list(self._seats)

    def _conflict(self, name: str) -> str:
        """Why no provider called *name* can be added; empty if one can."""
        if self.get(name) is not None:
            return f"there is a provider {name!r} already"
        if name != BUILTIN and (others := self.external):
            return f"provider {others[0].name!r} is active already, and only one besides the built-in can be"
        return ""

    def _refuse(self, name: str, reason: str) -> bool:
        self._refused.append(Refused(name, reason))
        self.log.warning("memory provider %r was not added: %s", name, reason)
        return False
