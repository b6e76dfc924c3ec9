"""The memory of one agent: its providers behind one surface that is quick, never raises and loses nothing."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.errors import HermesError, HomeUnusable, ProviderUnavailable
from hermes.memory import mirroring
from hermes.memory.agent_tools import inject_memory_provider_tools
from hermes.memory.coroutines import Coroutines
from hermes.memory.ending import end, watch
from hermes.memory.fences import (
    StreamingContextScrubber,
    build_memory_context_block,
    clean_recall,
    sanitize_context,
)
from hermes.memory.handover import Handover
from hermes.memory.journal import Journal, Recorded
from hermes.memory.lanes import Limits, LimitSet, describe
from hermes.memory.outgoing import Outgoing, Turn
from hermes.memory.provider import RecallStatus
from hermes.memory.recall import Recall
from hermes.memory.registry import Registry
from hermes.memory.reports import ManagerStatus, RecallFigures, SeatStatus, ShutdownReport
from hermes.memory.schemas import BUILTIN_TOOL, memory_provider_tools_enabled, normalize_tool_schema
from hermes.memory.seat import Seat
from hermes.memory.starting import Starter
from hermes.memory.tooling import Tools
from hermes.memory.turns import clean_messages, clean_text, detached, scrubbed
from hermes.plugin_host.hooks import Hooks

__all__ = [
    "MemoryManager",
    "Recorded",
    "StreamingContextScrubber",
    "build_memory_context_block",
    "inject_memory_provider_tools",
    "memory_provider_tools_enabled",
    "normalize_tool_schema",
    "sanitize_context",
]

PRE_COMPRESS_LIMIT = 6000
"""Characters that providers may add to the summary of a compression."""


class MemoryManager:
    """The built-in memory and at most one outside provider.

    Nothing here raises because of a provider, and nothing waits for one longer than *limits* say. What a
    provider shall keep is written to *journal* first (default: a journal in memory) and delivered behind it.
    *home* is what providers are given as ``hermes_home``, *profile* as ``agent_identity``. With *redact*,
    secrets are masked in all that reaches an outside provider. *disabled_tools* takes tools away, as
    ``DisabledTools`` tells. Turns are kept in *write_contexts* only. *hold* is called when it starts, to keep
    the profile from being deleted; *hooks* are of plugins; *log* takes all complaints. ``shutdown_all`` ends it.
    """

    def __init__(
        self,
        *,
        home: Path | None = None,
        profile: str = "",
        journal: Journal | None = None,
        limits: LimitSet | None = None,
        redact: bool = True,
        disabled_tools: Collection[str] = (),
        write_contexts: Collection[str] = ("primary",),
        hold: Callable[[], object] | None = None,
        hooks: Hooks | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.hooks = hooks or Hooks(log)
        self.home = home or Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes")
        self.profile = profile
        self._hold = hold
        self._loop = Coroutines("hermes-coroutines")
        self._registry = Registry(self.limits, disabled_tools, self._loop, log)
        self._outgoing = Outgoing(
            self._registry, Handover(self._registry, redact=redact), journal, write_contexts
        )
        self._last_words: tuple[Any, tuple[str, str]] | None = None
        self._recall = Recall(self._registry.note)
        self._tools = Tools(self._registry, self._outgoing.mask)
        self._told = mirroring.Told()
        self._starter = Starter(self._registry, self.limits, self.home, profile, self._outgoing.wake)
        self._ending = threading.Lock()
        self._report: ShutdownReport | None = None
        self._unwatch = watch(self, self._registry, self._loop)

    # -- providers ---------------------------------------------------------------------------------------

    def add_provider(self, provider: Any, *, name: str = "") -> bool:
        """Take *provider*; False, with a warning in the log, if it cannot be. The built-in one goes first.

        A base class is not asked for: what counts is the members that it has. *name* is what the journal and
        the status know it by, for a plugin that was chosen by another name than its provider gives itself.
        """
        return self._registry.add(provider, name)

    def provider_failed(self, name: str, reason: str) -> None:
        """The configured provider *name* could not be made; shown by ``status``."""
        self._registry.note_failure(name, reason)

    @property
    def providers(self) -> list[Any]:
        """The providers, in order."""
        return [seat.provider for seat in self._registry]

    def get_provider(self, name: str) -> Any | None:
        """The provider called *name*, if there is one."""
        seat = self._registry.get(name)
        return seat.provider if seat else None

    @property
    def external_name(self) -> str:
        """The name by which the outside provider is known; empty if there is none."""
        return next((seat.name for seat in self._registry.external), "")

    @property
    def session_id(self) -> str:
        """The session that is open."""
        return self._outgoing.session_id

    # -- start -------------------------------------------------------------------------------------------

    def initialize_all(self, session_id: str, **kwargs: Any) -> None:
        """Start every provider for *session_id* and begin to deliver.

        Providers are given *kwargs* with ``hermes_home``, ``platform``, ``agent_context`` and
        ``agent_identity`` added. One that fails is left out and tried again later; one that is slow joins
        when it is ready. Raises ProfileBusy or ProfileNotFound where the profile is being taken away.
        """
        if self._hold is not None:
            try:
                self._hold()
            except HomeUnusable as exc:  # a home that cannot be written can still be read
                self._registry.log.warning("the profile is not held: %s", exc)
        self._recall.fence()
        given = self._starter.start("initialize", session_id, kwargs)
        self._outgoing.open(session_id, given)
        self.fire("on_session_start", wait=False)

    def initialize_for_inspection(self, session_id: str, **kwargs: Any) -> None:
        """Start every provider for looking only: nothing is delivered."""
        self._starter.start("initialize_for_inspection", session_id, kwargs)
        self._outgoing.session_id = session_id

    # -- a turn ------------------------------------------------------------------------------------------

    def build_system_prompt(self) -> str:
        """The static blocks of all providers, for the system prompt."""
        blocks = [self._ask(seat, "system_prompt_block") for seat in self._usable("system_prompt_block")]
        texts = (sanitize_context(block).strip() for block in blocks if isinstance(block, str))
        return "\n\n".join(text for text in texts if text)

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """A turn begins with the person's *message*."""
        self._starter.revive()
        words = self._words(message)
        for seat in self._usable("on_turn_start"):
            facts = self._for(seat, scrubbed(detached(kwargs))) if kwargs else {}
            facts.setdefault("session_id", self.session_id)
            self._ask(seat, "on_turn_start", turn_number, words[seat.external], **facts)

    def prefetch_all(self, query: str, *, session_id: str = "") -> str:
        """What is known about *query*: text for ``build_memory_context_block``, empty if nothing is.

        An answer that comes too late is part of the next turn's, if that is in the same session.
        """
        self._starter.revive()
        words = self._words(query)
        if not words[0]:
            return ""
        found = []
        for seat in self._usable("prefetch"):
            try:
                found.append(self._recall.fetch(seat, words[seat.external], session_id or self.session_id))
            except Exception as exc:  # noqa: BLE001 - whatever a provider raises, the turn goes on
                self._registry.note(seat, "prefetch", exc)
        return clean_recall("\n\n".join(found))

    def queue_prefetch_all(self, query: str, *, session_id: str = "") -> None:
        """A turn has ended: providers may warm up for the next. Does not wait for them."""
        words = self._words(query)
        for seat in self._usable("queue_prefetch"):
            session = session_id or self.session_id
            try:
                seat.post("queue_prefetch", words[seat.external], within=self.limits.hook, session_id=session)
            except Exception as exc:  # noqa: BLE001 - whatever a provider raises, the turn goes on
                self._registry.note(seat, "queue_prefetch", exc)

    def describe_recall(self) -> str:
        """What the last recall found, for an indicator; empty if nothing is to be said."""
        parts = []
        for seat in self._usable("recall_status"):
            said = self._ask(seat, "recall_status")
            count, label = getattr(said, "count", 0), getattr(said, "provider_label", "")
            if isinstance(count, int) and count > 0:
                glyph = str(getattr(said, "glyph", "") or RecallStatus.glyph)
                parts.append(
                    f"{glyph} {label or seat.name}: {count} {'memory' if count == 1 else 'memories'}"
                )
        return "; ".join(parts)

    def sync_all(
        self,
        user_content: Any,
        assistant_content: Any,
        *,
        session_id: str = "",
        messages: Sequence[Mapping[str, Any]] | None = None,
        turn_author: str | None = None,
        interrupted: bool = False,
        idempotency_key: str = "",
        turn_time: float | None = None,
    ) -> Recorded:
        """Keep one completed turn: recorded when this returns, delivered later.

        Content may be text or a list of parts. A turn that was *interrupted* (its answer cut off) is not
        kept. *turn_time* is Unix seconds, *idempotency_key* makes a repeated call count once.
        """
        session = session_id or self.session_id
        for seat in self._direct("sync_turn"):
            if self._outgoing.writes and not interrupted:
                said = (clean_text(user_content), clean_text(assistant_content))
                self._ask(seat, "sync_turn", *said, session_id=session, messages=clean_messages(messages))
        return self._outgoing.turn(
            user_content,
            assistant_content,
            session_id=session,
            messages=messages,
            author=turn_author,
            key=idempotency_key,
            when=turn_time,
            interrupted=interrupted,
        )

    def sync_many(self, turns: Iterable[Turn]) -> Recorded:
        """Keep turns that were held elsewhere; one that was taken in before, by its key, is left out."""
        return self._outgoing.bulk(turns)

    def flush_pending(self, timeout: float | None = None) -> bool:
        """Deliver what waits, within *timeout* seconds (default: the limit of the end); True if all is."""
        return self._outgoing.flush(self.limits.shutdown if timeout is None else timeout)

    # -- tools -------------------------------------------------------------------------------------------

    def get_all_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools that are offered to the model, as function schemas; copies."""
        return self._tools.schemas()

    def get_all_tool_names(self) -> set[str]:
        """The names of the tools that are offered to the model."""
        return self._tools.names()

    def has_tool(self, tool_name: str) -> bool:
        """True if the model is offered *tool_name*."""
        return tool_name in self._tools.names()

    def handle_tool_call(self, tool_name: str, args: Any, **kwargs: Any) -> str:
        """Run a tool; the result is JSON text, also for everything that goes wrong.

        A write of the ``memory`` tool is told to the other providers.
        """
        self.fire("pre_tool_call", tool_name=tool_name, args=args)
        text, given = self._tools.run(tool_name, args, kwargs)
        self.fire("post_tool_call", tool_name=tool_name, args=args, result=text)
        if given is not None:
            self.notify_memory_tool_write(text, given, build_metadata=lambda: dict(kwargs))
            self._told.note(text)
        return text

    # -- sessions ----------------------------------------------------------------------------------------

    def on_session_end(self, messages: Sequence[Mapping[str, Any]] | None = None) -> Recorded:
        """The session has really ended, with this transcript (empty: the turns that were recorded).

        Returns at once; a second end without a turn in between is not told again.
        """
        self._tell_of_end(messages)
        self._recall.fence()
        return self._outgoing.end(messages, self.session_id)

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> Recorded:
        """The conversation goes on in *new_session_id*: new, resumed, branched, reset, compressed, undone."""
        facts = {"parent_session_id": parent_session_id, "reset": reset, "rewound": rewound, **kwargs}
        self._tell_of_switch(new_session_id, facts)
        return self._outgoing.switch(new_session_id, facts)

    def commit_session_boundary_async(
        self,
        messages: Sequence[Mapping[str, Any]] | None,
        *,
        new_session_id: str,
        parent_session_id: str = "",
        reason: str = "new_session",
    ) -> Recorded:
        """End the session and switch to the next: recorded together, delivered in that order."""
        facts = {"parent_session_id": parent_session_id or self.session_id, "reset": True, "reason": reason}
        self._tell_of_end(messages)
        self._tell_of_switch(new_session_id, facts)
        recorded = self._outgoing.boundary(messages, new_session_id, facts)
        self.fire("on_session_start", wait=False)
        return recorded

    def on_pre_compress(
        self, messages: Sequence[Mapping[str, Any]], *, require_checkpoint: bool = True
    ) -> str:
        """*messages* are about to be summarised away; the text returned belongs into the summary.

        A provider whose ``pre_compress_checkpoint_api_version`` is 2 can stop the compression: where its
        checkpoint fails, this raises ProviderUnavailable, unless *require_checkpoint* is False.
        """
        texts = []
        for seat in self._usable("on_pre_compress"):
            handed = self._for(seat, clean_messages(messages))
            binding = getattr(seat.provider, "pre_compress_checkpoint_api_version", 1) == 2
            named = {"require_checkpoint": require_checkpoint} if binding else {}
            try:
                texts.append(seat.ask("on_pre_compress", handed, within=self.limits.hook, **named))
            except Exception as exc:
                self._registry.note(seat, "on_pre_compress", exc)
                if binding and require_checkpoint:
                    raise ProviderUnavailable(
                        seat.name,
                        f"its checkpoint failed: {describe(exc)}",
                        next_step="do not compress now",
                    ) from exc
        joined = "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())
        cleaned: str = self._outgoing.mask(clean_recall(joined, limit=PRE_COMPRESS_LIMIT))
        return cleaned

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> Recorded:
        """The built-in memory changed: the other providers are told, in every context."""
        started = self._starter.given
        known = {
            "session_id": self.session_id,
            "platform": started.get("platform", ""),
            "execution_context": started.get("agent_context", ""),
        }
        facts = {k: v for k, v in known.items() if v} | dict(metadata or {})
        return self._outgoing.memory_write(action, target, content, facts)

    def notify_memory_tool_write(
        self, tool_result: Any, tool_args: Any, *, build_metadata: Callable[..., Any] | None = None
    ) -> int:
        """A host has run the ``memory`` tool: what it changed is told to the other providers; how many changes.

        Nothing is told of a call that failed or waits for approval, nor of one run by ``handle_tool_call``.
        """
        if self._told.take(tool_result):
            return 0
        writes = mirroring.writes_of(tool_result, tool_args)
        for action, target, content, own in writes:
            change = (action, target, content, own)
            extra = mirroring.metadata_from(build_metadata, change, self._registry.log)
            self.on_memory_write(action, target, content, {"tool_name": BUILTIN_TOOL, **extra, **own})
        return len(writes)

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> Recorded:
        """A subagent has finished *task*."""
        facts = {**kwargs, "task": task, "result": result, "child_session_id": child_session_id}
        return self._outgoing.delegation(facts)

    # -- the person's own commands -----------------------------------------------------------------------

    def search_records(self, query: str, *, limit: int = 10) -> list[dict[str, Any]] | None:
        """Stored items of the outside provider that match; None where it cannot be searched."""
        found: list[dict[str, Any]] | None = self._require("search_records", query, limit=limit)
        return found

    def export_records(self) -> Iterable[dict[str, Any]] | None:
        """Everything that the outside provider stores; None where it cannot give it out."""
        found: Iterable[dict[str, Any]] | None = self._require("export_records")
        return found

    def forget_records(self, *, session_id: str | None = None) -> int | None:
        """Delete what the outside provider stores, of one session or all; None where it cannot."""
        count: int | None = self._require("forget_records", session_id=session_id)
        return count

    # -- state and end -----------------------------------------------------------------------------------

    def status(self) -> ManagerStatus:
        """This manager as it is now. Raises nothing, calls no provider."""
        outgoing, recall = self._outgoing, self._recall
        try:
            journal = outgoing.stats()
        except HermesError as exc:
            self._registry.log.warning("the journal cannot be read: %s", exc)
            journal = None
        return ManagerStatus(
            profile=self.profile,
            home=str(self.home),
            session_id=self.session_id,
            agent_context=outgoing.agent_context,
            writes=outgoing.writes,
            providers=tuple(SeatStatus.of(seat, self._registry, journal) for seat in self._registry),
            refused=self._registry.refused,
            recall=RecallFigures(recall.used_late, recall.dropped, recall.timed_out > 0),
            skipped=dict(outgoing.skipped),
            redacted=outgoing.redacted,
            journal=journal,
        )

    def shutdown_all(self, timeout: float | None = None) -> ShutdownReport:
        """Deliver what can be, end every provider and thread; *timeout* seconds for all of it.

        Says what was left. What is undelivered stays in the journal. A second call returns the same report.
        """
        with self._ending:
            if self._report is None:
                seconds = self.limits.shutdown if timeout is None else timeout
                self._recall.fence()
                until = time.monotonic() + seconds
                self.hooks.drain(min(seconds / 2, self.limits.hook))
                self._report = end(self._registry, self._outgoing, self._loop, until - time.monotonic())
                self.hooks.close()
                self._unwatch()
                if not self._report.clean:
                    self._registry.log.warning("memory was shut down with something left: %s", self._report)
            return self._report

    def shutdown_drain_state(self) -> ShutdownReport | None:
        """What ``shutdown_all`` left; None before it."""
        return self._report

    def fire(self, hook: str, *, wait: bool = True, **facts: Any) -> list[Any]:
        """What the plugins answer that registered *hook*, which ``plugin_host.hooks`` lists with its facts.

        Without *wait* they are called in the background, and nothing is answered.
        """
        if not self.hooks.wanted(hook):
            return []
        known = {"session_id": self.session_id, "platform": self._starter.given.get("platform", "")}
        given = self._outgoing.mask(detached({**known, **facts}))
        if not wait:
            self.hooks.post(hook, given, within=self.limits.hook)
            return []
        return self.hooks.fire(hook, given, within=self.limits.hook)

    # -- inside ------------------------------------------------------------------------------------------

    def _usable(self, hook: str) -> list[Seat]:
        return [seat for seat in self._registry if seat.usable and seat.implements(hook)]

    def _direct(self, hook: str) -> list[Seat]:
        return [seat for seat in self._usable(hook) if not seat.external]

    def _words(self, text: Any) -> tuple[str, str]:
        """*text* cleaned, and as an outside provider may see it. One text comes several times in a turn."""
        known = self._last_words
        if known is None or known[0] is not text:
            cleaned = clean_text(text)
            known = self._last_words = (text, (cleaned, self._outgoing.mask(cleaned)))
        return known[1]

    def _for(self, seat: Seat, value: Any) -> Any:
        """*value* as *seat* may see it: an outside provider gets no secrets."""
        return self._outgoing.mask(value) if seat.external else value

    def _ask(self, seat: Seat, hook: str, *args: Any, **keywords: Any) -> Any:
        """The answer of *seat*, None where it fails."""
        try:
            return seat.ask(hook, *args, within=self.limits.hook, **keywords)
        except Exception as exc:  # noqa: BLE001 - whatever a provider raises, the turn goes on
            self._registry.note(seat, hook, exc)
            return None

    def _require(self, member: str, *args: Any, **keywords: Any) -> Any:
        """The answer of the outside provider, None if there is none. Raises ProviderUnavailable."""
        self._starter.revive()
        for seat in self._registry.external:
            if not seat.usable:
                raise ProviderUnavailable(seat.name, seat.reason or str(seat.state))
            try:
                return seat.ask(member, *args, within=self.limits.tool_call, **keywords)
            except Exception as exc:
                raise ProviderUnavailable(seat.name, describe(exc)) from exc
        return None

    def _tell_of_end(self, messages: Any) -> None:
        for seat in self._direct("on_session_end"):
            self._ask(seat, "on_session_end", clean_messages(messages))
        self.fire("on_session_end", wait=False)

    def _tell_of_switch(self, new_session_id: str, facts: Mapping[str, Any]) -> None:
        self._recall.fence()
        for seat in self._direct("on_session_switch"):
            named = {key: value for key, value in facts.items() if key != "rewound" or value}
            self._ask(seat, "on_session_switch", new_session_id, **named)
