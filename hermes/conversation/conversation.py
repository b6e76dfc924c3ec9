"""A conversation: turns in their order, sessions with their boundaries, and nothing that was said lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import attrs

from hermes.context.compaction import Compacted, Compaction
from hermes.context.engine import ContextEngine
from hermes.conversation.nudge import Nudge
from hermes.conversation.prompt import system_prompt, with_recall
from hermes.conversation.turn import Exchange, Told
from hermes.errors import ContextTooLong, HermesError, StoreUnavailable, UsageError
from hermes.memory.fences import build_memory_context_block
from hermes.memory.manager import MemoryManager
from hermes.model.client import Model
from hermes.model.tools import as_tool
from hermes.plugin_host.hooks import context_of
from hermes.sessions import Sessions
from hermes.sessions.records import State

Message = dict[str, Any]

DAY = 86_400.0
_STOPPED = {"role": "assistant", "content": "(stopped by the user before an answer)"}


def new_session_id(now: float) -> str:
    """A session id that sorts by time and is unique."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{uuid4().hex[:6]}"


@attrs.frozen
class Screen:
    """Where a conversation shows itself; every part may be left out."""

    text: Callable[[str], None] = lambda _: None
    """A piece of the answer."""
    note: Callable[[str], None] = lambda _: None
    """One line that the person should see: something could not be done, or was done on its own."""
    memory: Callable[[str], None] = lambda _: None
    """One quiet line: what was recalled, or stored in the background."""
    tool: Callable[[str], None] = lambda _: None
    """The name of a tool that the model has run."""


class Conversation:
    """Speaks with *model*, remembering through *memory*; the transcript goes to *sessions*.

    *engine* makes room when it grows too long. Every *nudge_every* turns the model is offered the memory tool
    in the background. A session in which nobody spoke for *idle* seconds (0: however long) is ended, and the
    next words begin another. ``close`` ends the session; the parts belong to whoever made them.
    """

    def __init__(
        self,
        *,
        memory: MemoryManager,
        sessions: Sessions,
        model: Model,
        engine: ContextEngine,
        nudge_every: int = 10,
        idle: float = DAY,
        screen: Screen | None = None,
        log: logging.Logger | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.memory = memory
        self.sessions = sessions
        self.model = model
        self.session_id = ""
        self.screen = screen or Screen()
        self.usage: dict[str, int] = {}
        self._log = log or logging.getLogger("hermes.conversation")
        self._clock = clock
        self._idle = idle
        self._compaction = Compaction(engine, self._ask_memory, self._log)
        self._nudge = Nudge(memory, model, nudge_every, lambda text: self.screen.memory(text), self._log)
        self._context: list[Message] = []
        self._system: Message = {}
        self._through = 0
        self._spoken = 0.0
        self._turns = 0

    # -- sessions ----------------------------------------------------------------------------------------

    def start(self, session_id: str = "", **facts: Any) -> None:
        """Begin a session, or go on in *session_id*; *facts* go to the providers.

        A turn that an earlier process finished and could not hand to the memory is handed over now. Raises
        NotFound where there is no such session.
        """
        resumed = self.sessions.get(session_id) if session_id else None
        self.session_id = resumed.id if resumed else new_session_id(self._clock())
        title = {"session_title": resumed.title} if resumed and resumed.title else {}
        self.memory.initialize_all(self.session_id, **{"platform": "cli", **title, **facts})
        self._hand_over_what_is_owed()
        endpoint = self.model.endpoint
        self._compaction.tell(
            "update_model", endpoint.name, endpoint.context_length, base_url=endpoint.base_url
        )
        self._enter("resume" if resumed else "start")

    def new(self, reason: str = "new_session") -> str:
        """End the session and begin another; its id."""
        old, new = self.session_id, new_session_id(self._clock())
        if (transcript := self._leave(reason)) is not None:
            self.memory.commit_session_boundary_async(transcript, new_session_id=new, reason=reason)
        else:
            self.memory.on_session_switch(new, parent_session_id=old, reset=True, reason=reason)
        self._compaction.tell("on_session_reset")
        self.session_id, self._turns = new, 0
        self._enter(reason)
        return new

    def resume(self, session_id: str) -> str:
        """End the session and go on in *session_id*; its id. Raises NotFound, UsageError."""
        old, wanted = self.session_id, self.sessions.get(session_id)
        if wanted.id == old:
            return old
        if (transcript := self._leave("resume")) is not None:
            self.memory.on_session_end(transcript)
        self.memory.on_session_switch(wanted.id, parent_session_id=old, reason="resume")
        self._compaction.tell("on_session_reset")
        self.session_id, self._turns = wanted.id, 0
        self._enter("resume")
        return wanted.id

    def branch(self) -> str:
        """Go on in a copy of the session, which itself stays as it is; the new id. Raises UsageError."""
        if not self.sessions.said(self.session_id):
            raise UsageError("nothing was said yet that could be branched from")
        old, new = self.session_id, new_session_id(self._clock())
        self.sessions.branch(old, new)
        self.sessions.end(old, "branched")
        self.memory.on_session_switch(new, parent_session_id=old, reason="branch")
        self.session_id = new
        self._enter("branch", parent_session_id=old)
        return new

    def undo(self) -> list[Message]:
        """Take the last turn back; its messages. Raises UsageError where there is none, or only a summary of it."""
        last = list(self.sessions.transcript(self.session_id))[-1:]
        if not last:
            raise UsageError("there is no turn to take back")
        if last[0].turn <= self._through:
            raise UsageError("that turn is part of what was summarised: it cannot be taken back any more")
        gone = self.sessions.undo(self.session_id)
        self.memory.on_session_switch(
            self.session_id, parent_session_id=self.session_id, rewound=True, reason="undo"
        )
        self._enter("undo")
        return gone

    def compress(self, focus: str = "") -> Compacted:
        """Make room now; *focus* is what shall be kept in most detail."""
        return self._compress(focus=focus, force=True)

    def figures(self) -> dict[str, int]:
        """Tokens used so far, how full the context is and where it is made shorter."""
        status = self._compaction.status()
        return {**self.usage, **{key: value for key, value in status.items() if isinstance(value, int)}}

    def close(self, reason: str = "exit") -> None:
        """The session is over. What is undelivered is the memory's to deliver; nothing waits for a provider."""
        if not self.session_id:
            return
        self._nudge.wait(2.0 if reason == "exit" else 0.0)
        if (transcript := self._leave(reason)) is not None:
            self.memory.on_session_end(transcript)
        self.session_id = ""

    # -- a turn ------------------------------------------------------------------------------------------

    def say(self, text: str) -> Told:
        """One turn: the person says *text*, and the answer is shown as it arrives.

        Ctrl-C (KeyboardInterrupt) stops the answer, not the conversation: the turn comes back as
        ``interrupted`` and is not given to the memory. Raises ModelUnavailable where there is no answer; what
        the person said is in the transcript then too.
        """
        self._end_if_idle()
        said = {"role": "user", "content": text}
        began = self._spoken = self._clock()
        number = self._store(lambda: self.sessions.begin_turn(self.session_id, said)) or 0
        exchange = Exchange(self.model, self._tools(), self._run_tool, self.screen.text, self.screen.tool)
        recall = ""
        try:
            recall = self._answer(said, number, exchange)
        except KeyboardInterrupt:
            exchange.interrupted = True
        except BaseException:
            self._finish(number, exchange.messages, "failed")
            raise
        state: State = "interrupted" if exchange.interrupted else "done"
        answered = exchange.messages or [_STOPPED]
        self._context += [said, *answered]
        self._finish(number, answered, state)
        durable = self._remember(text, exchange, number, began)
        self._count(exchange.usage)
        if state == "done":
            self._turns += 1
            self._nudge.turn_ended(self._system, self._context)
        return Told(
            exchange.text, tuple(exchange.messages), state, number, dict(exchange.usage), recall, durable
        )

    def _answer(self, said: Message, number: int, exchange: Exchange) -> str:
        """Recall, then exchange messages with the model; what was recalled, in one line."""
        words = said["content"]
        self.memory.on_turn_start(number or self._turns + 1, words)
        if self._compaction.is_due([self._system, *self._context, said], self.usage.get("context")):
            self._compress()
        block = build_memory_context_block(self.memory.prefetch_all(words, session_id=self.session_id))
        if recall := self.memory.describe_recall() if block else "":
            self.screen.memory(recall)
        asked = with_recall(said, block, self._before_the_model(words))
        try:
            exchange.run([self._system, *self._context, asked])
        except ContextTooLong:
            if not self._compress(force=True).done:
                raise
            exchange.run([self._system, *self._context, asked])
        return recall

    def _before_the_model(self, words: str) -> str:
        """What plugins want the model to know, asked by ``pre_llm_call``, as a fenced block."""
        return build_memory_context_block(context_of(self._fire("pre_llm_call", user_message=words)))

    def _fire(self, hook: str, **facts: Any) -> list[Any]:
        if not self.memory.hooks.wanted(hook):
            return []
        return self.memory.fire(
            hook, model=self.model.endpoint.name, conversation_history=self._context, **facts
        )

    def _remember(self, text: str, exchange: Exchange, number: int, when: float) -> bool:
        """Hand the turn to the memory; whether it is safe."""
        recorded = self.memory.sync_all(
            text,
            exchange.text,
            session_id=self.session_id,
            messages=[{"role": "user", "content": text}, *exchange.messages],
            interrupted=exchange.interrupted,
            idempotency_key=_key(self.session_id, number),
            turn_time=when,
        )
        if exchange.interrupted:
            return True
        self._store(lambda: self.sessions.mark_kept(self.session_id, number))
        self._fire("post_llm_call", wait=False, user_message=text, assistant_response=exchange.text)
        self.memory.queue_prefetch_all(text, session_id=self.session_id)
        return bool(recorded.durable)

    # -- inside ------------------------------------------------------------------------------------------

    def _finish(self, number: int, messages: Sequence[Message], state: State) -> None:
        self._store(lambda: self.sessions.finish_turn(self.session_id, number, messages, state))

    def _store(self, action: Callable[[], Any]) -> Any:
        """Write to the transcript; where that cannot be, the conversation goes on and says so."""
        try:
            return action()
        except StoreUnavailable as exc:
            self._log.warning("the transcript is not kept: %s", exc)
            self.screen.note(f"the transcript is not kept: {exc}")
            return None

    def _tools(self) -> list[Message]:
        schemas = self.memory.get_all_tool_schemas()
        own = self._compaction.engine.get_tool_schemas()
        return [as_tool(schema) for schema in (*schemas, *own)]

    def _run_tool(self, name: str, arguments: dict[str, Any]) -> str:
        if self.memory.has_tool(name):
            return self.memory.handle_tool_call(name, arguments)
        return self._compaction.run_tool(name, arguments)

    def _ask_memory(self, messages: list[Message]) -> str:
        return self.memory.on_pre_compress(messages)

    def _compress(self, *, focus: str = "", force: bool = False) -> Compacted:
        """Make room; providers and the engine are told once it is made."""
        tokens = self.usage.pop("context", None)
        outcome = self._compaction.run(self._context, tokens=tokens, focus=focus, force=force)
        if not outcome.done:
            if not force:
                self.screen.note(f"the conversation could not be shortened: {outcome.reason}")
            return outcome
        self._context = list(outcome.messages)
        self._through = max((row.turn for row in self.sessions.transcript(self.session_id)), default=0)
        self._store(lambda: self.sessions.keep_context(self.session_id, self._context, self._through))
        self.memory.on_session_switch(
            self.session_id,
            parent_session_id=self.session_id,
            reason="compression",
            tokens_before=outcome.before,
            tokens_after=outcome.after,
        )
        self._freeze("compression")
        self.screen.note(
            f"the conversation was shortened: about {outcome.before:,} tokens became {outcome.after:,}"
        )
        return outcome

    def _enter(self, reason: str, **facts: Any) -> None:
        """Stand in the session: the messages that the model goes on with, and its frozen prompt."""
        kept, self._through = self.sessions.context(self.session_id)
        self._context = [*kept, *self.sessions.said(self.session_id, after=self._through)]
        self._spoken = self._clock()
        self.usage.pop("context", None)
        self._freeze(reason, **facts)

    def _freeze(self, reason: str, **facts: Any) -> None:
        """Take the prompt of now, which stays, and tell the engine where the session stands."""
        self._system = system_prompt(self.memory.build_system_prompt(), now=self._clock())
        self._compaction.tell("on_session_start", self.session_id, reason=reason, **facts)

    def _leave(self, reason: str) -> list[Message] | None:
        """End the session if something was said in it here: its transcript, to be told of its end.

        None where nothing was said; empty where it cannot be read, and the memory has its own record.
        """
        if not self._turns:
            return None
        transcript: list[Message] = self._store(lambda: self.sessions.said(self.session_id)) or []
        self._store(lambda: self.sessions.end(self.session_id, reason))
        self._compaction.tell("on_session_end", self.session_id, transcript)
        return transcript

    def _end_if_idle(self) -> None:
        if self._idle and self._turns and self._clock() - self._spoken > self._idle:
            self.new("idle")
            self.screen.note("the last session was left alone for a while: a new one begins")

    def _hand_over_what_is_owed(self) -> None:
        """Give the memory the turns that a process before this one finished and could not hand over."""
        try:
            for session_id, number in self.sessions.owed():
                user, *rest = self.sessions.turn(session_id, number)
                answer = "\n\n".join(
                    m["content"] for m in rest if m["role"] == "assistant" and m.get("content")
                )
                self.memory.sync_all(
                    user["content"],
                    answer,
                    session_id=session_id,
                    messages=[user, *rest],
                    idempotency_key=_key(session_id, number),
                )
                self.sessions.mark_kept(session_id, number)
        except HermesError as exc:
            self._log.warning("turns of an earlier conversation wait for the memory: %s", exc)

    def _count(self, usage: dict[str, int]) -> None:
        for name, count in usage.items():
            self.usage[name] = count if name == "context" else self.usage.get(name, 0) + count
        if tokens := usage.get("context"):
            self._compaction.tell("update_from_response", {**usage, "prompt_tokens": tokens})


def _key(session_id: str, number: int) -> str:
    """What tells the memory that it has this turn already; a turn without a number was never kept here."""
    return f"chat:{session_id}:{number or uuid4().hex}"
