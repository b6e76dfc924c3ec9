"""Recall before a model call: what the provider knows now, and what it found too late for the turn before."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hermes.memory.lanes import Call, CallStillRunning, CallTimedOut
from hermes.memory.seat import Seat

_MOST_LATE = 64


class Recall:
    """The recall of one manager. A late answer serves the next turn of its session, unless that moved on."""

    def __init__(self, note: Callable[[Seat, str, BaseException], None]) -> None:
        self._note = note
        self._lock = threading.Lock()
        self._late: dict[tuple[str, str], Call] = {}
        self.used_late = 0
        self.dropped = 0
        self.timed_out = 0
        """Calls in a row that were too late."""

    def fetch(self, seat: Seat, query: str, session_id: str) -> str:
        """What *seat* recalls for *query*; raises what the provider raises, never for being late."""
        late = self._arrived(seat.name, session_id)
        fresh = ""
        try:
            found = seat.ask("prefetch", query, within=seat.limits.prefetch, session_id=session_id)
            fresh = found if isinstance(found, str) else ""
            self.timed_out = 0
        except CallTimedOut as exc:
            self._remember(seat.name, session_id, exc.call)
            self.timed_out += 1
            self._note(seat, "prefetch", exc)
        except CallStillRunning:
            pass  # counted by the seat
        return "\n".join(part for part in (fresh, late) if part.strip())

    def fence(self) -> None:
        """The conversation has moved on: what is still on its way answers nothing any more."""
        with self._lock:
            self.dropped += len(self._late)
            self._late.clear()

    def _arrived(self, name: str, session_id: str) -> str:
        if not self._late:
            return ""
        with self._lock:
            call = self._late.get((name, session_id))
            if call is None or not call.finished:
                return ""
            del self._late[name, session_id]
            if call.error is not None or not isinstance(call.value, str) or not call.value.strip():
                self.dropped += 1
                return ""
            self.used_late += 1
            return call.value

    def _remember(self, name: str, session_id: str, call: Call) -> None:
        with self._lock:
            self._late.pop((name, session_id), None)
            while len(self._late) >= _MOST_LATE:
                del self._late[next(iter(self._late))]
                self.dropped += 1
            self._late[name, session_id] = call
