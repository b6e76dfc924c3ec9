"""What leaves for outside providers: recorded in the journal first, delivered in order behind it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from hermes.errors import HermesError
from hermes.memory.handover import Handover
from hermes.memory.journal import Deliverer, DrainState, Entry, Journal, JournalStats, Kind, Recorded
from hermes.memory.lanes import describe
from hermes.memory.registry import Registry
from hermes.memory.turns import clean_messages, clean_text, plain, without_fences

_BEHIND_STUCK = 0.05
"""Seconds for delivering at the end where a call has not come back."""
_CONTINUES = ("compress", "branch")


class Turn(Protocol):
    """A turn that was held elsewhere, for bulk ingest; *key* is its identity, *time* in Unix seconds."""

    @property
    def session_id(self) -> str:
        """The conversation."""

    @property
    def user(self) -> Any:
        """What the person said."""

    @property
    def assistant(self) -> Any:
        """What was answered."""

    @property
    def time(self) -> float | None:
        """When it was said."""

    @property
    def author(self) -> str | None:
        """Who said it."""

    @property
    def key(self) -> str:
        """Its identity."""


class Outgoing:
    """The journal of one manager, its deliverer, and the session that it writes for."""

    def __init__(
        self, registry: Registry, handover: Handover, journal: Journal | None, contexts: Collection[str]
    ) -> None:
        self.session_id = ""
        self.agent_context = "primary"
        self.sessions: set[str] = set()
        self.skipped: Counter[str] = Counter()
        self._registry = registry
        self._handover = handover
        self._contexts = frozenset(contexts)
        self._lock = threading.Lock()
        self._journal = journal
        self._given = journal is not None
        self._deliverer: Deliverer | None = None
        self._closed = False
        self._ended = ""
        self._trouble = ""

    @property
    def writes(self) -> bool:
        """True where turns are kept: not in a job, a subagent or a flush."""
        return self.agent_context in self._contexts

    # -- sessions ----------------------------------------------------------------------------------------

    def open(self, session_id: str, given: Mapping[str, Any]) -> None:
        """A session begins, started with *given*; what was left undelivered is delivered from now on."""
        self.session_id, self.agent_context, self._ended = session_id, given["agent_context"], ""
        self._handover.identify(session_id, given)
        self.sessions.add(session_id)
        journal = self._journal
        if journal is None or journal.path is None or not journal.path.exists():
            return  # nothing was left, and reading creates nothing
        if self.writes:
            for seat in self._registry.external:
                journal.open_session(seat.name, session_id)
        if self._registry.external:
            self._delivering().start()

    def end(self, messages: Any, session_id: str) -> Recorded:
        """The session is over."""
        entries = self._end(messages, session_id)
        return self._record(entries) if entries else _nothing("nobody has to be told")

    def switch(self, new: str, payload: Mapping[str, Any]) -> Recorded:
        """The conversation goes on in the session *new*."""
        recorded = self._record(self._switch(new, payload))
        self._moved(new, payload)
        return recorded

    def boundary(self, messages: Any, new: str, payload: Mapping[str, Any]) -> Recorded:
        """The session ends and another one begins: both in one record, returned from at once."""
        recorded = self._record(self._end(messages, self.session_id) + self._switch(new, payload))
        self._moved(new, {})
        return recorded

    def _end(self, messages: Any, session_id: str) -> list[Entry]:
        if not self.writes:
            self.skipped[f"end in context {self.agent_context}"] += 1
            return []
        if session_id and self._ended == session_id:
            self.skipped["end of an ended session"] += 1
            return []
        self._ended = session_id
        return self._handover.entries(Kind.SESSION_END, session_id, {"messages": clean_messages(messages)})

    def _switch(self, new: str, payload: Mapping[str, Any]) -> list[Entry]:
        facts = {**plain(payload), "new_session_id": new}
        entries = self._handover.entries(Kind.SESSION_SWITCH, self.session_id or new, facts)
        for entry in entries:
            if seat := self._registry.get(entry.provider):
                seat.switching.expect(entry.key)
        return entries

    def _moved(self, new: str, payload: Mapping[str, Any]) -> None:
        old, self.session_id = self.session_id, new
        self.sessions.add(new)
        reason = str(payload.get("reason") or "")
        goes_on = reason.startswith(_CONTINUES) and old and old != new and self._ended != old
        if goes_on and self.writes and self._journal is not None:
            for seat in self._registry.external:
                self._journal.continue_session(seat.name, old, new)
        self._ended = ""

    # -- what was said and written -----------------------------------------------------------------------

    def turn(
        self,
        user: Any,
        assistant: Any,
        *,
        session_id: str,
        messages: Any,
        author: str | None,
        key: str,
        when: float | None,
        interrupted: bool,
    ) -> Recorded:
        """One turn, cleaned; why not, where it is not kept."""
        if interrupted:
            return self._skip("interrupted")
        if not self.writes:
            return self._skip(f"context {self.agent_context}")
        payload = _payload(user, assistant, messages, author)
        if not payload["user"] and not payload["assistant"]:
            return self._skip("empty")
        self._ended = ""
        self.sessions.add(session_id)
        return self._record(self._handover.entries(Kind.TURN, session_id, payload, key=key, when=when))

    def bulk(self, turns: Iterable[Turn]) -> Recorded:
        """Turns that were held elsewhere, each once however often they come; no end is owed for them."""
        entries: list[Entry] = []
        for turn in turns:
            payload = _payload(turn.user, turn.assistant, getattr(turn, "messages", None), turn.author)
            if payload["user"] or payload["assistant"]:
                entries += self._handover.entries(
                    Kind.TURN, turn.session_id, payload, key=turn.key, when=turn.time
                )
            else:
                self.skipped["empty"] += 1
        return self._record(entries, open_sessions=False, ledger=True)

    def memory_write(self, action: str, target: str, content: str, metadata: Mapping[str, Any]) -> Recorded:
        """The built-in memory changed."""
        facts = {"action": action, "target": target, "content": content, "metadata": dict(metadata)}
        payload = plain(facts, without_fences)
        session = str(metadata.get("session_id") or self.session_id)
        key = str(metadata.get("idempotency_key") or "")
        return self._record(self._handover.entries(Kind.MEMORY_WRITE, session, payload, key=key))

    def delegation(self, payload: Mapping[str, Any]) -> Recorded:
        """A subagent has finished."""
        if not self.writes:
            return self._skip(f"context {self.agent_context}")
        return self._record(
            self._handover.entries(Kind.DELEGATION, self.session_id, plain(payload, without_fences))
        )

    # -- delivery ----------------------------------------------------------------------------------------

    def flush(self, seconds: float) -> bool:
        """Deliver what waits, *seconds* at most; True if nothing is left."""
        if self._journal is None or not self._registry.external:
            return True
        deadline = time.monotonic() + seconds
        for seat in self._registry.external:
            seat.settled(seconds)
        deliverer = self._delivering()
        if not self._closed:
            deliverer.start()
        deliverer.flush(max(0.0, deadline - time.monotonic()))
        try:
            owed = self._journal.stats().undelivered_by_provider
        except HermesError as exc:
            self._registry.log.warning("the journal cannot be read: %s", exc)
            return False
        return not any(owed.get(seat.name) for seat in self._registry.external)

    def wake(self) -> None:
        """A provider has joined, or a call has returned."""
        if self._deliverer is not None:
            self._deliverer.wake()

    def stop(self, seconds: float) -> DrainState | None:
        """Deliver what can be, within *seconds*, and end the deliverer; None if there was none."""
        with self._lock:
            self._closed = True
            deliverer = self._deliverer
        if deliverer is None:
            return None
        stuck = any(seat.delivery.stuck() for seat in self._registry.external)
        deliverer.flush(min(seconds, _BEHIND_STUCK) if stuck else seconds * 0.8)
        return deliverer.stop(min(seconds, _BEHIND_STUCK) if stuck else seconds * 0.2)

    def confirm(self, name: str) -> None:
        """The provider *name* has shut down cleanly: what it accepted in these sessions is confirmed."""
        if self._journal is not None:
            for session in self.sessions if self._deliverer is not None else ():
                self._journal.confirm(name, session)

    def close(self) -> None:
        """Add the figures to the journal, and close it if it is our own."""
        self._add_figures()
        if self._journal is not None and not self._given:
            self._journal.close()

    def stats(self) -> JournalStats | None:
        """The journal, if there is one."""
        return self._journal.stats() if self._journal is not None else None

    @property
    def redacted(self) -> int:
        """Secrets that were masked."""
        return self._handover.redacted

    def mask(self, value: Any) -> Any:
        """*value* without secrets."""
        return self._handover.mask(value)

    def _skip(self, reason: str) -> Recorded:
        self.skipped[reason] += 1
        return _nothing(reason)

    def _record(
        self, entries: Sequence[Entry], *, open_sessions: bool = True, ledger: bool = False
    ) -> Recorded:
        if not entries:
            return _nothing("no provider keeps it")
        if self._closed and not self._given:
            self._registry.log.warning("%d records came after the end and are lost", len(entries))
            return Recorded(durable=False, reason="the manager is shut down")
        deliverer = self._delivering()
        assert self._journal is not None
        recorded = self._journal.append(entries, open_sessions=open_sessions, ledger=ledger)
        self._note_trouble(recorded)
        if not self._closed:
            deliverer.start()
            deliverer.wake()
        return recorded

    def _note_trouble(self, recorded: Recorded) -> None:
        trouble = (
            "" if recorded.durable or (self._journal and self._journal.path is None) else recorded.reason
        )
        if trouble and trouble != self._trouble:
            self._registry.log.warning(
                "the journal is not on disk: %s; kept in memory until there is room", trouble
            )
        self._trouble = trouble

    def _delivering(self) -> Deliverer:
        with self._lock:
            if self._journal is None:
                self._journal = Journal(None)
            if self._deliverer is None:
                self._deliverer = Deliverer(
                    self._journal,
                    self._handover.send,
                    providers=self._registry.ready,
                    chosen=lambda: [seat.name for seat in self._registry.external],
                    send_many=self._handover.send_together,
                    together=self._handover.takes_together,
                    between=self._add_figures,
                    log=self._registry.log,
                )
                self._handover.wake = self._deliverer.wake
            return self._deliverer

    def _add_figures(self) -> None:
        journal = self._journal
        if journal is None or journal.path is None or not journal.path.exists():
            return
        for seat in self._registry.external:
            if recent := seat.take_recent():
                try:
                    journal.add_hooks(seat.name, recent)
                except Exception as exc:  # noqa: BLE001 - figures are not worth a failure
                    self._registry.log.debug("figures of %s were not kept: %s", seat.name, describe(exc))


def _payload(user: Any, assistant: Any, messages: Any, author: Any) -> dict[str, Any]:
    return {
        "user": clean_text(user),
        "assistant": clean_text(assistant),
        "messages": clean_messages(messages) if messages else None,
        "turn_author": author,
    }


def _nothing(reason: str) -> Recorded:
    """Nothing had to be recorded, so nothing is at risk."""
    return Recorded(durable=True, records=0, reason=reason)
