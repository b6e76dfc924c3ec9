"""What is owed to outside providers: written down as they will get it, and handed over by the deliverer."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from hermes.errors import ProviderUnavailable
from hermes.memory.journal import Entry, Kind, Record, Sent
from hermes.memory.lanes import Call, CallStillRunning, CallTimedOut
from hermes.memory.redact import Redactor
from hermes.memory.registry import Registry
from hermes.memory.seat import Seat

HOOKS: Mapping[Kind, str] = {
    Kind.TURN: "sync_turn",
    Kind.MEMORY_WRITE: "on_memory_write",
    Kind.DELEGATION: "on_delegation",
    Kind.SESSION_END: "on_session_end",
    Kind.SESSION_SWITCH: "on_session_switch",
}


_MOST_LATE = 64


class Handover:
    """Makes the entries of the journal, and calls the providers with its records."""

    def __init__(self, registry: Registry, *, redact: bool) -> None:
        self._registry = registry
        self._redact = redact
        self._lock = threading.Lock()
        self._late: dict[tuple[str, str], Call] = {}
        self.wake: Callable[[], None] = _nobody
        self.redacted = 0

    def entries(
        self,
        kind: Kind,
        session_id: str,
        payload: Mapping[str, Any],
        *,
        key: str = "",
        when: float | None = None,
    ) -> list[Entry]:
        """One entry for each provider that wants to be told, with the secrets masked throughout."""
        seats = [seat for seat in self._registry.external if seat.implements(HOOKS[kind])]
        if not seats:
            return []
        payload = self.mask(payload)
        key = key or uuid.uuid4().hex
        when = time.time() if when is None else when
        return [
            Entry(kind, seat.name, session_id, self._for(seat, kind, payload), key, when) for seat in seats
        ]

    def mask(self, payload: Any) -> Any:
        """*payload* with every secret in it masked, unless that is switched off."""
        if not self._redact:
            return payload
        redactor = Redactor(payload)
        self.redacted += redactor.count
        return redactor.mask(payload)

    def send(self, record: Record) -> Sent:
        """Hand *record* over; how the provider took it.

        Raises CallStillRunning while a call has not returned: the outcome of a call that was late is given
        when the same record comes again. Raises what the provider raises.
        """
        seat = self._registry.get(record.provider)
        if seat is None or not seat.usable:
            raise ProviderUnavailable(record.provider, seat.reason if seat else "it is not active")
        if not self._came_late(record):
            hook, args, within, keywords = _call_of(record, seat)
            try:
                seat.deliver(hook, *args, within=within, **keywords)
            except CallTimedOut as exc:
                with self._lock:
                    self._late[record.provider, record.key] = exc.call
                    while len(self._late) > _MOST_LATE:
                        del self._late[next(iter(self._late))]
                seat.delivery.after(exc.call, self.wake)
                raise CallStillRunning(hook, time.time() - within) from exc
        return Sent.STORED if seat.stores else Sent.ACCEPTED

    def _came_late(self, record: Record) -> bool:
        """True if an earlier call with *record* has returned well meanwhile. Raises what it raised."""
        with self._lock:
            call = self._late.get((record.provider, record.key))
            if call is None or not call.finished:
                return False  # a call that goes on is refused by its lane
            del self._late[record.provider, record.key]
        call.result()
        return True

    def _for(self, seat: Seat, kind: Kind, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """*payload* without the messages that the provider does not take: they repeat the whole session."""
        if (
            kind is Kind.TURN
            and payload.get("messages")
            and not seat.members.accepts("sync_turn", "messages")
        ):
            return {**payload, "messages": None}
        return payload


def _call_of(record: Record, seat: Seat) -> tuple[str, tuple[Any, ...], float, dict[str, Any]]:
    """The member for *record*, its arguments, its limit in seconds and its keywords."""
    hook, given, limits = HOOKS[record.kind], dict(record.payload), seat.limits
    keywords: dict[str, Any] = {"idempotency_key": record.key}
    args: tuple[Any, ...]
    match record.kind:
        case Kind.TURN:
            args = (given.get("user", ""), given.get("assistant", ""))
            keywords |= {"session_id": record.session_id, "turn_time": record.time}
            keywords |= {k: given[k] for k in ("messages", "turn_author") if given.get(k) is not None}
        case Kind.MEMORY_WRITE:
            args = (given.get("action", ""), given.get("target", ""), given.get("content", ""))
            metadata = given.get("metadata") or {}
            keywords["metadata"] = {
                "session_id": record.session_id,
                **metadata,
                "idempotency_key": record.key,
            }
        case Kind.DELEGATION:
            args = (given.pop("task", ""), given.pop("result", ""))
            keywords |= given
        case Kind.SESSION_END:
            args = (given.get("messages") or [],)
            keywords["session_id"] = record.session_id
            return hook, args, limits.session_end, keywords
        case Kind.SESSION_SWITCH:
            args = (given.pop("new_session_id", ""),)
            if not given.get("rewound"):
                given.pop("rewound", None)  # many providers do not know it
            keywords |= given
    return hook, args, limits.hook, keywords


def _nobody() -> None:
    """Nobody waits for deliveries yet."""
