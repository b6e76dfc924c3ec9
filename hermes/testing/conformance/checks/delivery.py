"""That ``sync_turn`` keeps what ``delivery`` says of it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from hermes.memory.lanes import CallTimedOut
from hermes.memory.seat import Seat
from hermes.testing.conformance.bench import SESSION, Bench, NotTried
from hermes.testing.conformance.recall import given_out, in_files
from hermes.testing.conformance.session import ANSWER, MESSAGES, QUESTION
from hermes.testing.conformance.watch import Network

AT_ONCE = 2.0
"""Seconds within which a turn must have been taken over by a provider that works on it later."""
WORD = "quicksilver"
_STORED = (
    'With delivery = "stored" the host forgets a turn once sync_turn has returned: what is lost then is lost.'
)


def accepts(bench: Bench) -> None:
    """A provider that accepts returns while its backend has not answered yet."""
    seat = bench.start()
    if seat.stores or not seat.implements("sync_turn"):
        return
    bench.watch.network = Network.SLOW
    place = bench.place_of(seat.provider, "sync_turn")
    try:
        seat.deliver("sync_turn", QUESTION, ANSWER, within=AT_ONCE, session_id=SESSION, messages=MESSAGES)
    except CallTimedOut:
        running = bench.place_running(seat.delivery)
        bench.error(
            f"sync_turn has not returned after {AT_ONCE:g} s",
            why='delivery = "accepted" says that a turn is taken over at once and worked on later.',
            mend='do the work in a thread; or say delivery = "stored" and return when the backend has it',
            where=running if running.file else place,
        )
    except Exception as exc:  # noqa: BLE001 - whatever it raises is what is wrong
        raised = bench.place_raised(exc)
        bench.error(
            f"sync_turn raises {type(exc).__name__} although it only accepts",
            why="Nobody waits for a turn that was accepted: an error there reaches no one.",
            mend='work in a thread and log what fails; or say delivery = "stored"',
            where=raised if raised.file else place,
        )
    finally:
        bench.watch.release()


def refuses(bench: Bench) -> None:
    """With the disk full and the network away, a provider that stores says so: it raises."""
    seat = _storing(bench)
    if seat is None:
        return
    bench.watch.network = Network.NONE
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        seat.deliver(
            "sync_turn",
            QUESTION,
            ANSWER.format(word="lost"),
            within=30,
            session_id=SESSION,
            messages=MESSAGES,
        )
    except Exception:  # noqa: BLE001 - that it raises is what is wanted
        return
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    bench.error(
        "sync_turn returns although its backend is down (disk full, no network)",
        why=_STORED,
        mend="let the error through: the host keeps the turn and hands it over again",
        where=bench.place_of(seat.provider, "sync_turn"),
    )


def stores(bench: Bench) -> None:
    """Tell one turn, and end the process the moment it was stored, without a shutdown."""
    seat = _storing(bench)
    if seat is None:
        return
    answer = ANSWER.format(word=WORD)
    try:
        seat.deliver("sync_turn", QUESTION, answer, within=30, session_id=SESSION, messages=MESSAGES)
    except Exception as exc:
        if bench.is_own_fault(exc):
            bench.error(
                f"sync_turn raises {type(exc).__name__}: {exc}",
                why=_STORED,
                mend="mend it; the turn is an ordinary one",
                where=bench.place_raised(exc),
            )
        raise NotTried(f"sync_turn needs its backend: {exc}") from exc
    bench.notes["stored"] = True


def reads(bench: Bench) -> None:
    """Another process finds the turn."""
    if not bench.notes.get("stored"):
        return
    seat = bench.start(session="conformance-session-2")
    found = any(WORD in text for _, text in given_out(seat, bench, "conformance-session-2"))
    if not found and in_files(Path(os.environ["HERMES_HOME"]), WORD) is None:
        bench.error(
            "a turn that was stored is not found by another process",
            why=_STORED,
            mend="return from sync_turn after the commit (or the answer of the service), not before it",
            where=bench.place_of(seat.provider, "sync_turn"),
        )
    bench.leave(seat)


def _storing(bench: Bench) -> Seat | None:
    """The provider, started; None where it does not say that it stores."""
    seat = bench.start()
    return seat if seat.stores and seat.implements("sync_turn") else None
