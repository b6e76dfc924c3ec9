"""Starting the providers of a manager: one that fails is left out for a while, a slow one joins later."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import HermesError
from hermes.memory.lanes import Call, CallStillRunning, LimitSet
from hermes.memory.registry import Registry
from hermes.memory.seat import Seat, State
from hermes.memory.turns import detached

_CONTEXTS = frozenset({"cron", "subagent", "flush"})


class Starter:
    """What the providers were started with, for those that have to be started again."""

    def __init__(
        self, registry: Registry, limits: LimitSet, home: Path, profile: str, joined: Callable[[], None]
    ) -> None:
        self.given: dict[str, Any] = {}
        self._registry = registry
        self._limits = limits
        self._home = home
        self._profile = profile
        self._joined = joined
        self._hook = self._session_id = ""

    def start(self, hook: str, session_id: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Start every provider by *hook*, all at once, and wait within the limit; what they are given."""
        platform = str(kwargs.get("platform") or "cli")
        self.given = {
            "hermes_home": str(self._home),
            "platform": platform,
            "agent_context": platform if platform in _CONTEXTS else "primary",
            "agent_identity": self._profile or "default",
            **{key: value for key, value in kwargs.items() if value is not None},
        }
        self._hook, self._session_id = hook, session_id
        deadline = time.monotonic() + self._limits.initialize
        for seat, call in [(seat, self._begin(seat)) for seat in self._registry]:
            if call is not None and not call.wait(deadline - time.monotonic()):
                seat.reason = f"it has not started within {self._limits.initialize:g} s and joins when it has"
                self._registry.log.warning("memory provider %r: %s", seat.name, seat.reason)
            elif seat.state is State.FAILED:
                self._registry.log.warning("memory provider %r is left out: %s", seat.name, seat.reason)
        return self.given

    def revive(self) -> None:
        """Try a provider again whose start failed, when it is time for that; it joins at a later turn."""
        for seat in self._registry.external:
            if (
                not seat.usable
                and seat.state is State.FAILED
                and self._hook
                and time.monotonic() >= seat.retry_at
            ):
                self._begin(seat, patience=0.0)

    def _begin(self, seat: Seat, patience: float | None = None) -> Call | None:
        hook = self._hook if seat.members.get(self._hook) is not None else "initialize"
        try:
            return seat.begin(
                hook,
                self._session_id,
                detached(self.given),
                tools=lambda schemas: self._registry.set_tools(seat, schemas),
                joined=self._joined,
                patience=patience,
            )
        except CallStillRunning as exc:
            seat.failed(str(exc))
        except HermesError as exc:
            self._registry.note(seat, hook, exc)
        return None
