"""What is owed to outside providers: written down as they will get it, and handed over by the deliverer."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hermes.errors import ProviderUnavailable
from hermes.memory.journal import Entry, Kind, Record, Sent
from hermes.memory.journal.records import new_key
from hermes.memory.lanes import Call, CallStillRunning, CallTimedOut
from hermes.memory.redact import Redactor
from hermes.memory.registry import Registry
from hermes.memory.seat import Seat

TOGETHER = "sync_turns"
"""The member that takes several turns in one call, where a provider has it."""
HOOKS: Mapping[Kind, str] = {
    Kind.TURN: "sync_turn",
    Kind.MEMORY_WRITE: "on_memory_write",
    Kind.DELEGATION: "on_delegation",
    Kind.SESSION_END: "on_session_end",
    Kind.SESSION_SWITCH: "on_session_switch",
}


_MOST_LATE = 512
_IDENTITY = (
    "platform", "user_id", "user_id_alt", "gateway_session_key", "chat_id", "channel_id", "thread_id", "cwd"
)  # fmt: skip


class Handover:
    """Makes the entries of the journal, and calls the providers with its records."""

    def __init__(self, registry: Registry, *, redact: bool) -> None:
        self._registry = registry
        self._redact = redact
        self._lock = threading.Lock()
        self._late: dict[tuple[str, str], Call] = {}
        self.identity: Mapping[str, str] = {}
        self.wake: Callable[[], None] = _nobody
        self.redacted = 0

    def identify(self, session_id: str, given: Mapping[str, Any]) -> None:
        """What is recorded from now on is of *session_id*, started with *given*.

        It may be delivered by the manager of somebody else: a provider that names ``identity`` is told.
        """
        known = {name: str(given[name]) for name in _IDENTITY if given.get(name)}
        if "cwd" not in known:
            with contextlib.suppress(OSError):  # the folder is gone
                known["cwd"] = os.getcwd()  # noqa: PTH109 - as a text
        self.identity = {"session_id": session_id, **known}

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
        key = key or new_key()
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
        seat = self._seat(record)
        try:
            if not self._came_late(record):
                self._deliver([record], seat, *_call_of(record, seat))
        finally:
            seat.switching.over(record.key)
        return Sent.STORED if seat.stores else Sent.ACCEPTED

    def takes_together(self, provider: str) -> bool:
        """Whether *provider* takes several turns in one call.

        Only where it also takes the key: a member of that name in a class that was not written for this
        contract may mean something else.
        """
        seat = self._registry.get(provider)
        return (
            seat is not None
            and seat.implements(TOGETHER)
            and seat.members.accepts("sync_turn", "idempotency_key")
        )

    def send_together(self, records: Sequence[Record]) -> Sent:
        """Like ``send``, for several turns of one provider: all of them, or none."""
        seat = self._seat(records[0])
        turns = [_turn(record) for record in records]
        self._deliver(records, seat, TOGETHER, (turns,), seat.limits.hook, {})
        return Sent.STORED if seat.stores else Sent.ACCEPTED

    def _seat(self, record: Record) -> Seat:
        seat = self._registry.get(record.provider)
        if seat is None or not seat.usable:
            raise ProviderUnavailable(record.provider, seat.reason if seat else "it is not active")
        return seat

    def _deliver(
        self,
        records: Sequence[Record],
        seat: Seat,
        hook: str,
        args: tuple[Any, ...],
        within: float,
        keywords: Mapping[str, Any],
    ) -> None:
        try:
            seat.deliver(hook, *args, within=within, **keywords)
        except CallTimedOut as exc:
            with self._lock:
                self._late.update({(one.provider, one.key): exc.call for one in records})
                while len(self._late) > _MOST_LATE:
                    del self._late[next(iter(self._late))]
            seat.delivery.after(exc.call, self.wake)
            raise CallStillRunning(hook, time.time() - within) from exc

    def _came_late(self, record: Record) -> bool:
        """True if an earlier call with *record* has returned well meanwhile. Raises what it raised."""
        with self._lock:
            call = self._late.get((record.provider, record.key))
            if call is None or not call.finished:
                return False  # a call that goes on is refused by its lane
            del self._late[record.provider, record.key]
        if call.hook == TOGETHER and call.error is not None:
            return False  # which of the turns it was, each one's own call will tell
        call.result()
        return True

    def _for(self, seat: Seat, kind: Kind, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """*payload* with whose it is, and without messages, for a provider that takes the one and not the other.

        Messages repeat the whole session.
        """
        if self.identity and seat.members.accepts(HOOKS[kind], "identity"):
            payload = {**payload, "identity": self.identity}
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
            keywords = _turn(record)
            args = (keywords.pop("user_content"), keywords.pop("assistant_content"))
        case Kind.MEMORY_WRITE:
            args = (given.get("action", ""), given.get("target", ""), given.get("content", ""))
            metadata = given.get("metadata") or {}
            keywords["metadata"] = {
                "session_id": record.session_id,
                **metadata,
                "idempotency_key": record.key,
            }
            if "identity" in given:
                keywords["identity"] = given["identity"]
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


def _turn(record: Record) -> dict[str, Any]:
    """The arguments of ``sync_turn`` by name; those without a value are left out."""
    given = record.payload
    return {
        "user_content": given.get("user", ""),
        "assistant_content": given.get("assistant", ""),
        "session_id": record.session_id,
        "idempotency_key": record.key,
        "turn_time": record.time,
        **{
            name: given[name]
            for name in ("messages", "turn_author", "identity")
            if given.get(name) is not None
        },
    }


def _nobody() -> None:
    """Nobody waits for deliveries yet."""
