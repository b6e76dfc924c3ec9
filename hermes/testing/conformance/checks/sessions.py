"""That a provider follows when the conversation goes on in another session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hermes.memory.lanes import describe
from hermes.testing.conformance.bench import SESSION, Bench, NotTried
from hermes.testing.conformance.recall import in_files
from hermes.testing.conformance.session import ANSWER, QUESTION, SWITCHES

NEXT = "conformance-session-two"
WORD = "halcyon"
_WHY = "A turn that is filed under the wrong session is recalled, exported and forgotten with the wrong one."
_MEND = "keep what on_session_switch gives as the session, and prefer the session_id of each call"


def switched(bench: Bench) -> None:
    """Every kind of switch is taken, and a turn after it is filed under the new session."""
    seat = bench.start()
    provider = seat.provider
    place = bench.place_of(
        provider, "on_session_switch" if seat.implements("on_session_switch") else "sync_turn"
    )
    for reason, facts in SWITCHES:
        named = {"parent_session_id": SESSION, "reset": False, **facts, "reason": reason}
        try:
            seat.deliver("on_session_switch", NEXT, within=bench.limits.hook, **named)
        except Exception as exc:  # noqa: BLE001 - whatever it raises is what is wrong
            if bench.is_own_fault(exc):
                raised = bench.place_raised(exc)
                bench.error(
                    f"on_session_switch raises {describe(exc)} for {reason}",
                    why=_WHY,
                    mend="take every reason; do nothing for those that need nothing",
                    where=raised if raised.file else place,
                )
    answer = ANSWER.format(word=WORD)
    try:
        seat.deliver("sync_turn", QUESTION, answer, within=bench.limits.tool_call, session_id=NEXT)
        bench.end(seat)
    except Exception as exc:
        raise NotTried(f"sync_turn needs its backend: {describe(exc)}") from exc
    filed = _filed_under(bench)
    if filed and filed != NEXT:
        bench.error(
            f"a turn after the switch to {NEXT} is filed under {filed}", why=_WHY, mend=_MEND, where=place
        )
    elif not filed and bench.watch.seen("network") and (attribute := _kept(provider)):
        bench.warning(
            f"self.{attribute} still holds the session that has ended",
            why=_WHY,
            mend=_MEND,
            where=bench.place_of(provider, "initialize"),
        )


def _filed_under(bench: Bench) -> str:
    """The session that the turn was filed under, as far as it can be seen; empty where it cannot."""
    fresh = bench.start(provider=bench.load().memory_provider, session="conformance-session-3")
    records = bench.answer(fresh, "export_records")
    filed = next(
        (
            str(record["session_id"])
            for record in records or ()
            if WORD in json.dumps(record, default=str) and record.get("session_id")
        ),
        "",
    )
    bench.leave(fresh)
    if filed:
        return filed
    home = Path(os.environ["HERMES_HOME"])
    if in_files(home, WORD) is None:
        return ""
    if in_files(home, NEXT) is not None:
        return NEXT
    return SESSION if in_files(home, SESSION) is not None else ""


def _kept(provider: Any) -> str:
    """The attribute that still has the old session."""
    return next((name for name, value in getattr(provider, "__dict__", {}).items() if value == SESSION), "")
