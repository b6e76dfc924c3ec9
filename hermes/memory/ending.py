"""The end of a manager: one deadline for everything, and a report of what it could not reach."""

from __future__ import annotations

import atexit
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.memory.coroutines import Coroutines
from hermes.memory.lanes import Call, Lane, describe
from hermes.memory.outgoing import Outgoing
from hermes.memory.registry import Registry
from hermes.memory.reports import ShutdownReport
from hermes.memory.seat import Seat

if TYPE_CHECKING:
    from hermes.memory.manager import MemoryManager

_FOR_DELIVERY = 0.6
"""The share of the time that goes to deliveries first."""


def end(registry: Registry, outgoing: Outgoing, loop: Coroutines, seconds: float) -> ShutdownReport:
    """Deliver, shut the providers down, end every thread: *seconds* for all of it."""
    deadline = time.monotonic() + seconds

    def left(share: float = 1.0) -> float:
        return max(0.0, deadline - time.monotonic()) * share

    drained = outgoing.stop(left(_FOR_DELIVERY))
    failed = _shut_down(registry, outgoing, left)
    outgoing.close()
    lanes = [lane for seat in registry.close_lanes() for lane in (seat.turn, seat.delivery)]
    stuck = [] if loop.close(left()) else ["event loop"]
    stuck += [lane.name for lane in lanes if not lane.join(left())]
    if drained is None:
        return ShutdownReport(stuck=tuple(stuck), failed=failed)
    return ShutdownReport(
        undelivered=drained.undelivered,
        handed_over=drained.handed_over,
        dead=drained.dead,
        held=drained.held,
        stuck=tuple(stuck + ([drained.stuck] if drained.stuck else [])),
        failed=failed,
    )


def _shut_down(registry: Registry, outgoing: Outgoing, left: Callable[..., float]) -> dict[str, str]:
    """Call ``shutdown`` of every provider, all at once; how those failed that did."""
    failed: dict[str, str] = {}
    running: list[tuple[Seat, Call, Lane | None]] = []
    for seat in registry:
        if not seat.implements("shutdown"):
            continue
        try:
            if seat.external:
                running.append((seat, *_start(seat, left())))
            else:
                seat.ask("shutdown", within=left())
        except Exception as exc:  # noqa: BLE001 - reported, not raised
            failed[seat.name] = describe(exc)
    for seat, call, own in running:
        if not call.wait(left(0.8)):
            failed[seat.name] = "shutdown did not return"
        elif call.error is not None:
            failed[seat.name] = describe(call.error)
        elif not seat.stores:
            outgoing.confirm(seat.name)
        if own is not None:
            own.close()
            own.join(left(0.1))
    return failed


def _start(seat: Seat, seconds: float) -> tuple[Call, Lane | None]:
    """Call ``shutdown`` on the lane of turns, or on a lane of its own where that is held."""
    own = Lane(f"hermes-{seat.name}-end") if seat.turn.busy() else None
    lane = own or seat.turn
    return seat.shutting_down(lane, max(seconds, 0.001)), own


def watch(manager: MemoryManager, registry: Registry, loop: Coroutines) -> Callable[[], None]:
    """Look after a manager that nobody shuts down; what to call when somebody did.

    At the exit of the interpreter it is shut down; if it is thrown away before, its idle threads end.
    """
    reference = weakref.ref(manager)

    def at_exit() -> None:
        alive = reference()
        if alive is not None:
            alive.shutdown_all()

    thrown_away = weakref.finalize(manager, _let_go, registry, loop, at_exit)
    thrown_away.atexit = False

    def done() -> None:
        thrown_away.detach()
        atexit.unregister(at_exit)

    atexit.register(at_exit)
    return done


def _let_go(registry: Registry, loop: Coroutines, at_exit: Callable[[], None]) -> None:
    atexit.unregister(at_exit)
    registry.close_lanes()
    loop.close(0.0)
