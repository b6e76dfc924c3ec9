"""The place of one provider in a manager: its state, its members, its lanes, its figures."""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from hermes.errors import PermanentError, ProviderUnavailable
from hermes.memory.coroutines import Coroutines
from hermes.memory.lanes import Call, CallStillRunning, CallTimedOut, Lane, LimitSet, describe
from hermes.memory.latency import HookStats
from hermes.memory.provider import BUILTIN, MemoryProvider
from hermes.memory.signatures import Members

FIRST_RETRY, LAST_RETRY = 30.0, 600.0
"""Seconds until a failed start is tried again, doubling from the first to the last."""
SWITCH_PATIENCE = 0.25
"""Seconds that the first call after a switch waits for the switch to be told."""
_MOST_RETURNED = 512
_DEFAULTS = vars(MemoryProvider)


class State(StrEnum):
    """Where a provider stands. In the first and the third it is used, in the others it is left out."""

    NEW = "new"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class Switching:
    """A switch to another session, recorded and about to be told: the next call of a turn waits for it a little.

    Only the first one does, and only for a provider that is quick: the switch comes after the end of the old
    session, which may take minutes.
    """

    def __init__(self) -> None:
        self._key = ""
        self._told = threading.Event()

    def expect(self, key: str) -> None:
        """The record *key* tells of a switch."""
        self._told.clear()
        self._key = key

    def over(self, key: str) -> None:
        """The record *key* was told, or could not be."""
        if key == self._key:
            self._key = ""
            self._told.set()

    def wait(self, seconds: float) -> float:
        """Seconds that are left of *seconds* for the call itself."""
        if not self._key:
            return seconds
        began = time.monotonic()
        self._told.wait(min(SWITCH_PATIENCE, seconds / 2))
        self._key = ""
        return max(seconds - (time.monotonic() - began), 0.001)


class Seat:
    """One provider. An outside one is called on workers, under limits; the built-in one directly."""

    def __init__(self, provider: Any, name: str, limits: LimitSet, loop: Coroutines) -> None:
        self.provider = provider
        self.name = name
        self.limits = limits
        self.external = name != BUILTIN
        self.members = Members(provider)
        self.tools: dict[str, dict[str, Any]] = {}
        self.usable = True
        """True if it may be called: it is not starting, failed or closed."""
        self.state = State.NEW
        self.reason = ""
        self.context = contextvars.copy_context()
        self.turn = Lane(f"hermes-{name}-turn", observe=self._observe)
        self.delivery = Lane(f"hermes-{name}-delivery", observe=self._observe)
        self.switching = Switching()
        self.retry_at = float("inf")
        self._starting: Call | None = None
        self._retry_after = FIRST_RETRY
        self._loop = loop
        self._lock = threading.Lock()
        self._returned: deque[tuple[str, float, float, str | None]] = deque()
        self._totals: dict[str, HookStats] = {}
        self._recent: dict[str, HookStats] = {}
        self._skipped: dict[str, int] = {}

    @property
    def state(self) -> State:
        """Where the provider stands."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self.usable = state in (State.NEW, State.READY)

    @property
    def stores(self) -> bool:
        """True if a normal return of a write means that the backend has it."""
        return getattr(self.provider, "delivery", None) == "stored"

    def implements(self, hook: str) -> bool:
        """True if the provider has *hook*, and not only the empty one of the base class."""
        member = getattr(self.provider, hook, None)
        default = _DEFAULTS.get(hook)
        return callable(member) and (default is None or getattr(member, "__func__", None) is not default)

    def ask(self, hook: str, *args: Any, within: float, **keywords: Any) -> Any:
        """What the provider answers to *hook*, within so many seconds; the call of a turn.

        Raises what it raises, CallTimedOut, CallStillRunning, CallFailed.
        """
        if not self.external:
            return self._directly(hook, args, keywords)
        return self._on(self.turn, hook, args, keywords, self.switching.wait(within), None)

    def deliver(self, hook: str, *args: Any, within: float, **keywords: Any) -> Any:
        """Like ``ask``, on the lane of deliveries and in the context of the session's start."""
        return self._on(self.delivery, hook, args, keywords, within, self.context.copy())

    def post(self, hook: str, *args: Any, within: float, **keywords: Any) -> None:
        """Call *hook* without waiting; *within* says when it counts as stuck. Raises CallStillRunning."""
        if not self.external:
            self._directly(hook, args, keywords)
            return
        fn, given, named = self._prepared(hook, args, keywords)
        try:
            self.turn.start(hook, fn, given, named, limit=within, patience=0.0)
        except CallStillRunning:
            self._skip(hook)
            raise

    def begin(
        self,
        hook: str,
        session_id: str,
        keywords: Mapping[str, Any],
        *,
        tools: Callable[[Any], None],
        joined: Callable[[], None],
        patience: float | None = None,
    ) -> Call | None:
        """Start the provider for a session by *hook*; it joins when that returns. The call to wait for.

        *tools* is given what it offers then, *joined* called once it is ready. Raises CallStillRunning, and
        then leaves the state as it is.
        """
        self.context = contextvars.copy_context()

        def start() -> None:
            self._check_available()
            self._directly(hook, (session_id,), keywords, observe=False)
            tools(self._directly("get_tool_schemas", (), {}, observe=False))

        if not self.external:
            try:
                start()
            except Exception as exc:  # noqa: BLE001 - whatever it is, it is the reason that status shows
                self.failed(describe(exc), permanent=isinstance(exc, PermanentError))
            else:
                self.state = State.READY
            return None
        call = self.turn.start(hook, start, limit=self.limits.initialize, patience=patience)
        self.state, self.reason, self._starting = State.STARTING, "", call
        self.turn.after(call, lambda: self._started(call, joined))
        return call

    def _check_available(self) -> None:
        """Raises ProviderUnavailable where an outside provider says that it cannot start."""
        if not self.external or self.members.get("is_available") is None:
            return
        if not self._directly("is_available", (), {}, observe=False):
            reason = self._directly("unavailable_reason", (), {}, observe=False)
            raise ProviderUnavailable(self.name, str(reason or "it says that it is not set up"))

    def settled(self, seconds: float) -> bool:
        """Wait for a start that is under way, *seconds* at most; True if the provider can be used."""
        if self._starting is not None and self.state is State.STARTING:
            self._starting.wait(seconds)
        return self.usable

    def _started(self, call: Call, joined: Callable[[], None]) -> None:
        if self.state is not State.STARTING:
            return
        if call.error is not None:
            error = call.error
            reason = error.reason if isinstance(error, ProviderUnavailable) else describe(error)
            self.failed(reason, permanent=isinstance(error, PermanentError))
            return
        self.state, self.reason = State.READY, ""
        self.retry_at, self._retry_after = float("inf"), FIRST_RETRY
        joined()

    def shutting_down(self, lane: Lane, seconds: float) -> Call:
        """Start ``shutdown`` on *lane*; the call to wait for. Raises CallStillRunning and LaneClosed."""
        fn, given, named = self._prepared("shutdown", (), {})
        return lane.start("shutdown", fn, given, named, limit=seconds, context=self.context.copy())

    def failed(self, reason: str, *, permanent: bool = False) -> None:
        """Take the provider out for *reason*; a start is tried again later unless that is *permanent*."""
        self.state, self.reason = State.FAILED, reason
        self.retry_at = float("inf") if permanent else time.monotonic() + self._retry_after
        self._retry_after = min(self._retry_after * 2, LAST_RETRY)

    def stuck(self) -> tuple[str, float] | None:
        """The call that is past its limit and since when (Unix seconds): none are made on its lane."""
        return self.turn.stuck() or self.delivery.stuck()

    def stats(self) -> dict[str, HookStats]:
        """Every member that was called, since the manager was made."""
        with self._lock:
            self._add_up()
            return {hook: _sum(self._totals.get(hook), self._recent.get(hook)) for hook in self._hooks()}

    def skipped(self) -> dict[str, int]:
        """Calls that were not made because an earlier one had not come back, by member."""
        with self._lock:
            return dict(self._skipped)

    def take_recent(self) -> dict[str, HookStats]:
        """What was counted since this was last asked."""
        with self._lock:
            self._add_up()
            recent, self._recent = self._recent, {}
            for hook, stats in recent.items():
                self._totals.setdefault(hook, HookStats()).merge(stats)
            return recent

    # -- inside ------------------------------------------------------------------------------------------

    def _on(
        self,
        lane: Lane,
        hook: str,
        args: tuple[Any, ...],
        keywords: Mapping[str, Any],
        within: float,
        context: contextvars.Context | None,
    ) -> Any:
        fn, given, named = self._prepared(hook, args, keywords)
        try:
            return lane.call(hook, fn, given, named, limit=within, context=context)
        except CallTimedOut:
            with self._lock:
                self._of(hook).timeouts += 1
            raise
        except CallStillRunning:
            self._skip(hook)
            raise

    def _prepared(
        self, hook: str, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[Callable[..., Any], Any, Any]:
        member = self.members.get(hook)
        if member is None:
            return _nothing, (), {}
        given, named = self.members.bind(hook, member, args, keywords)
        return self._settled, (member, given, named), {}

    def _settled(self, member: Callable[..., Any], given: Any, named: Any) -> Any:
        result = member(*given, **named)
        return self._loop.settle(result) if hasattr(result, "__await__") else result

    def _directly(
        self, hook: str, args: tuple[Any, ...], keywords: Mapping[str, Any], *, observe: bool = True
    ) -> Any:
        fn, given, named = self._prepared(hook, args, keywords)
        began = time.monotonic()
        error: BaseException | None = None
        try:
            return fn(*given, **named)
        except BaseException as exc:
            error = exc
            raise
        finally:
            if observe:
                self._observe(hook, time.monotonic() - began, error)

    def _observe(self, hook: str, seconds: float, error: BaseException | None) -> None:
        # Added up when somebody asks: this stands between a provider's answer and the turn.
        self._returned.append((hook, time.monotonic(), seconds, None if error is None else describe(error)))
        if len(self._returned) >= _MOST_RETURNED:
            with self._lock:
                self._add_up()

    def _add_up(self) -> None:
        now, now_monotonic = time.time(), time.monotonic()
        while self._returned:
            hook, ended, seconds, error = self._returned.popleft()
            stats = self._of(hook)
            stats.latency.add(seconds)
            stats.calls += 1
            if error is None:
                stats.last_ok = now - (now_monotonic - ended)
            else:
                stats.errors += 1
                stats.last_error = error

    def _of(self, hook: str) -> HookStats:
        stats = self._recent.get(hook)
        if stats is None:
            stats = self._recent[hook] = HookStats()
        return stats

    def _skip(self, hook: str) -> None:
        with self._lock:
            self._skipped[hook] = self._skipped.get(hook, 0) + 1

    def _hooks(self) -> list[str]:
        return sorted({*self._totals, *self._recent})


def _sum(*parts: HookStats | None) -> HookStats:
    total = HookStats()
    for part in parts:
        if part is not None:
            total.merge(part)
    return total


def _nothing() -> None:
    return None
