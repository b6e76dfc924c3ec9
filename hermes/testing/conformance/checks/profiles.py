"""That nothing of one profile is seen in another."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.memory.lanes import describe
from hermes.memory.seat import Seat
from hermes.testing.conformance.bench import FIRST, SECOND, Bench, NotTried
from hermes.testing.conformance.recall import given_out, tools_give
from hermes.testing.conformance.session import run

WORD = "vermilion"
OTHER = "ultramarine"
_WHY = "Profiles are separate people, or separate lives of one: what crosses is told to the wrong one."
_MEND = "keep everything below hermes_home, and nothing in a module, a class or a folder of the person"


def tell_the_first(bench: Bench) -> None:
    """A whole session in the first profile; every text in it holds one word."""
    seat = bench.start(FIRST)
    for heard in run(seat, bench, word=WORD):
        if heard.member == "sync_turn" and heard.error is not None:
            raise NotTried(f"sync_turn needs its backend: {describe(heard.error)}")
    bench.leave(seat)


def ask_the_second(bench: Bench) -> None:
    """Another process, as the second profile of the same person."""
    seat = bench.start(SECOND)
    _compare(bench, seat, WORD, "another process")
    bench.leave(seat)


def both_at_once(bench: Bench) -> None:
    """Both profiles in one process, each with a provider of its own."""
    seats = {
        profile: bench.start(profile, provider=bench.load().memory_provider) for profile in (FIRST, SECOND)
    }
    for profile, word in ((FIRST, WORD), (SECOND, OTHER)):
        bench.enter(profile)
        for heard in run(seats[profile], bench, word=word):
            if heard.member == "on_session_end":
                break  # both are to stay open
    for profile, word in ((SECOND, WORD), (FIRST, OTHER)):
        bench.enter(profile)
        _compare(bench, seats[profile], word, "the same process")
    for seat in seats.values():
        bench.leave(seat)


def _compare(bench: Bench, seat: Seat, word: str, where: str) -> None:
    for way, text in _everything(seat, bench):
        if word in text:
            member = way if hasattr(seat.provider, way) else "handle_tool_call"
            bench.error(
                f"{way} gives out what another profile was told ({where})",
                why=_WHY,
                mend=_MEND,
                where=bench.place_of(seat.provider, member),
            )


def _everything(seat: Seat, bench: Bench) -> Iterator[tuple[str, str]]:
    yield from given_out(seat, bench, "conformance-session-2")
    yield from tools_give(seat, bench)
