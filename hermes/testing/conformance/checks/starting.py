"""Availability, the start, and one session from its first turn to its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hermes.memory.lanes import describe
from hermes.memory.seat import Seat
from hermes.testing.conformance.bench import FIRST, SESSION, Bench, NotTried
from hermes.testing.conformance.findings import Where
from hermes.testing.conformance.session import Heard, run
from hermes.testing.conformance.watch import Network

_ASKED_EVERYWHERE = "is_available is asked on every start and every status, and must answer on a train too."


def available(bench: Bench) -> None:
    """``is_available`` answers True or False, before and after the setup, and asks no network."""
    filled = bench.job.filled["dotenv"]
    for name in filled:
        os.environ.pop(name, None)
    seat = bench.seat()
    place = bench.place_of(seat.provider, "is_available")
    bench.watch.network = Network.NONE
    answer = _ask(bench, seat, "before its setup", place)
    if answer is False and not seat.ask("unavailable_reason", within=bench.limits.hook):
        bench.warning(
            "is_available says no before the setup, and unavailable_reason says nothing",
            why="status shows the reason; without it a person can only guess.",
            mend="let unavailable_reason name what is missing: which key, which package",
            where=place,
        )
    os.environ.update(filled)
    bench.answer(seat, "save_config", dict(bench.job.filled["values"] or {}), str(bench.enter(FIRST)))
    _ask(bench, seat, "after its setup", place)
    for event in bench.watch.seen("network"):
        bench.error(
            f"is_available asks the network ({event.what})",
            why=_ASKED_EVERYWHERE,
            mend="look at settings and installed packages only; connect in initialize",
            where=event.where if event.where.file else place,
        )
    for event in bench.watch.seen("process"):
        bench.warning(
            f"is_available starts a program ({event.what})",
            why=_ASKED_EVERYWHERE,
            mend="look for it with shutil.which and start it in initialize",
            where=event.where if event.where.file else place,
        )


def _ask(bench: Bench, seat: Seat, moment: str, place: Where) -> Any:
    """What ``is_available`` answers; None where it raises."""
    try:
        answer = seat.ask("is_available", within=bench.limits.hook)
    except Exception as exc:  # noqa: BLE001 - whatever it raises is what is wrong
        if not bench.watch.seen("network"):  # that is told by itself
            raised = bench.place_raised(exc)
            bench.error(
                f"is_available raises {moment}: {describe(exc)}",
                why=_ASKED_EVERYWHERE,
                mend="return False, and say in unavailable_reason what is missing",
                where=raised if raised.file else place,
            )
        return None
    if not isinstance(answer, bool):
        bench.warning(
            f"is_available returns {answer!r} {moment}",
            why="True and False are what the contract names.",
            mend="return bool(...)",
            where=place,
        )
    return answer


def session(bench: Bench) -> None:
    """The provider starts, and every member that a session calls answers as the contract has it."""
    home = bench.enter(FIRST)
    seat = bench.seat()
    steps: dict[str, Callable[[], None]] = {
        "save_config": lambda: bench.set_up(seat, home),
        "initialize": lambda: bench.initialize(seat, home, FIRST, SESSION),
    }
    for step, call in steps.items():
        try:
            call()
        except Exception as exc:
            if not bench.is_own_fault(exc):
                raise NotTried(f"{step} needs its backend: {describe(exc)}") from exc
            bench.error(
                f"{step} raises {describe(exc)}",
                why="A provider that does not start is left out of the session.",
                mend="mend it; raise only where something that was set up is missing, and say what",
                where=bench.place_raised(exc),
            )
            return
        if step == "save_config" and not seat.ask("is_available", within=bench.limits.hook):
            raise NotTried(f"it is not available although its form is filled in{bench.reason(seat)}")
    for heard in run(seat, bench):
        if not heard.about:  # tools have checks of their own
            _judge(bench, heard)
    bench.leave(seat)


def _judge(bench: Bench, heard: Heard) -> None:
    place = bench.place_of(bench.registered.memory_provider, heard.member)
    if heard.error is not None:
        if bench.is_own_fault(heard.error):
            raised = bench.place_raised(heard.error)
            bench.error(
                f"{heard.member} raises {describe(heard.error)}",
                why="The host goes on without its answer, and status shows the provider as failing.",
                mend="mend it; a provider answers with nothing where it has nothing",
                where=raised if raised.file else place,
            )
        return
    if heard.wanted and not isinstance(heard.answer, heard.wanted):
        bench.error(
            f"{heard.member} returns {type(heard.answer).__name__}, expected {heard.wanted[0].__name__}",
            why="The host drops an answer that it cannot use.",
            mend=f"return {heard.wanted[0].__name__}, empty for nothing",
            where=place,
        )
