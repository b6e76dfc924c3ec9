"""The provider ``local``: what the host calls, in terms of a store and a search."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hermes.errors import HermesError, PermanentError, ProviderUnavailable, UsageError
from hermes.memory.provider import MemoryProvider, Message, RecallStatus, is_trivial_prompt
from hermes.plugins.memory.local import render, tools
from hermes.plugins.memory.local.memory import Memory
from hermes.plugins.memory.local.options import Options, options_of
from hermes.plugins.memory.local.records import OWNER, Fact, Limits, Role, Source, Store, Totals, Turn
from hermes.plugins.memory.local.scopes import project_of, scope_of

if TYPE_CHECKING:
    from hermes.plugins.memory.local.embedding.meaning import Meaning
    from hermes.plugins.memory.local.ranking import Weights
    from hermes.plugins.memory.local.tiers import Tier

PREFETCHED = 8
"""Items given to the model before each call, at most."""
PINNED = 5
"""Pinned facts among them, whatever is asked."""
_NOT_THE_PERSON = frozenset({"cron", "flush", "subagent"})
_PROMPT = (
    "Earlier conversations are stored word for word and the fitting ones are shown before each turn. "
    "Use local_search to look for more, local_remember for what the user wants kept, local_update for what has "
    "changed, and local_forget only when the user asks to delete something."
)


class LocalMemoryProvider(MemoryProvider):
    """Every turn in one SQLite file of the profile, and facts that were remembered on purpose."""

    delivery: ClassVar[Literal["accepted", "stored"]] = "stored"

    def __init__(
        self,
        *,
        config: Callable[[], Mapping[str, Any]] = dict,
        clock: Callable[[], float] = time.time,
        weights: Weights | None = None,
        secret: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._config = config
        self._secret = secret
        self._tier: Tier | None = None
        self.meaning: Meaning | None = None
        """What searches by meaning, once it is initialized and if a model is set up."""
        self._clock = clock
        self._weights = weights
        self._options = Options()
        self._store: Store | None = None
        self._path: Path | None = None
        self._memory: Memory | None = None
        self._session = self._started = ""
        self._turn = 0
        self._person = ""
        self._context = ""
        self._looks_only = False
        self._in_context: set[str] = set()
        self._recalled = 0

    @property
    def name(self) -> str:
        """Always ``local``."""
        return "local"

    # -- state -------------------------------------------------------------------------------------------

    def is_available(self) -> bool:
        """True where this Python's SQLite has full-text search."""
        return not self.unavailable_reason()

    def unavailable_reason(self) -> str:
        """Why not."""
        import sqlite3

        db = sqlite3.connect(":memory:")
        try:
            db.execute("CREATE VIRTUAL TABLE t USING fts5 (x, content = '', detail = none)")
        except sqlite3.OperationalError as exc:
            return f"the SQLite of this Python cannot search text ({exc})"
        finally:
            db.close()
        return ""

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Start for a session of the person (or chat) that *kwargs* name; no file is made yet."""
        home = kwargs.get("hermes_home")
        if not home:
            raise ProviderUnavailable(self.name, "it was not told the profile's home (hermes_home)")
        path = Path(home) / "local" / "memory.db"
        options = options_of(self._config())
        if self._store is None or path != self._path or options != self._options:
            from hermes.plugins.memory.local import tiers
            from hermes.plugins.memory.local.store import SqliteStore

            self.shutdown()
            store = SqliteStore(path, vector_memory=options.vector_memory)
            self._store, self._path, self._options = store, path, options
            self._tier = tiers.choose(options, Path(home))
            self.meaning = tiers.open_meaning(self._tier, store, self._secret)
        self._settle()
        self._memory = Memory(
            self._store,
            self._scopes(session_id, kwargs),
            limits=self._options.limits,
            clock=self._clock,
            weights=self._weights,
            meaning=self.meaning,
        )
        self._session, self._started, self._turn = session_id, session_id, 0
        self._person = str(kwargs.get("user_name") or kwargs.get("user_id") or "")
        self._context = str(kwargs.get("agent_context") or "primary")
        self._looks_only = False
        self._in_context = {session_id}

    def initialize_for_inspection(self, session_id: str, **kwargs: Any) -> None:
        """Start for looking only: what is recalled does not count as used."""
        self.initialize(session_id, **kwargs)
        self._looks_only = True

    def identity_signature(self) -> dict[str, Any]:
        """The file and the scopes."""
        scopes = list(self._memory.scopes) if self._memory else []
        return {"path": str(self._path or ""), "scope": " ".join(scopes)}

    def get_status_config(self, provider_config: dict[str, Any]) -> dict[str, Any]:
        """How much is stored, and where; times are Unix seconds."""
        shown = super().get_status_config(provider_config)
        if self._store is None:
            return shown
        totals = self._store.totals()
        shown |= {
            "turns": totals.turns,
            "messages": totals.messages,
            "sessions": totals.sessions,
            "notes": totals.notes,
            "file": str(self._path),
            "bytes": totals.bytes,
        }
        shown |= self._of_tier()
        shown |= _of_facts(totals) | _of_retention(self._options.limits)
        if totals.people > 1:
            shown["people"] = totals.people
        if totals.oldest:
            shown["oldest"] = totals.oldest
        if totals.last_write:
            shown["newest"] = totals.last_write
        if totals.owes_scrub:
            shown["owed"] = "deleted text leaves the write-ahead log when the file is next opened"
        if totals.journal_mode not in ("", "wal"):
            shown["journal"] = f"{totals.journal_mode} (no write-ahead log here: writers and readers wait)"
        return shown

    def shutdown(self) -> None:
        """Close the file; every turn was stored when it was taken."""
        self._settle()
        meaning, self.meaning = self.meaning, None
        if meaning is not None:
            meaning.close()
        store, self._store, self._memory = self._store, None, None
        if store is not None:
            store.close()

    def _of_tier(self) -> dict[str, Any]:
        """How is searched, what leads further, and how far the texts are embedded."""
        if self._tier is None:
            return {}
        shown: dict[str, Any] = {"tier": self._tier.name}
        if self.meaning is not None:
            shown["model"] = self.meaning.label
            progress = self.meaning.progress()
            shown["embedded"] = progress.done
            if progress.waiting:
                shown["to_embed"] = progress.waiting
            if progress.rate:
                shown["embedded_per_second"] = round(progress.rate, 1)
            if progress.problem:
                shown["problem"] = progress.problem
        if self._tier.problem:
            shown["problem"] = self._tier.problem
        if self._tier.next_step:
            shown["next_tier"] = self._tier.next_step
        return shown

    def _embed(self) -> None:
        """Have what lacks vectors embedded in the background."""
        if self.meaning is not None and not self._looks_only:
            self.meaning.embedder.start()
            self.meaning.embedder.wake()

    def _settle(self) -> None:
        """Write down what is only noted so far: how often facts were used."""
        if self._memory is not None and self._memory.has_uses:
            self._memory.settle()

    @property
    def memory(self) -> Memory:
        """What is stored, as this session sees it. Raises ProviderUnavailable before ``initialize``."""
        if self._memory is None:
            raise ProviderUnavailable(self.name, "it is not initialized", next_step="call initialize first")
        return self._memory

    # -- reading -----------------------------------------------------------------------------------------

    def system_prompt_block(self) -> str:
        """What the model should know of this memory; always the same."""
        return _PROMPT

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What earlier sessions hold on *query*; empty if nothing fits. The current session is left out."""
        self._recalled = 0
        if is_trivial_prompt(query):
            return ""
        memory = self.memory
        seen = [*self._in_context, *([session_id] if self._in_context and session_id else [])]
        hits = [hit.record for hit in memory.recall(query, PREFETCHED, seen) if hit.relevant]
        pinned = self._pinned([record.id for record in hits])
        shown = {fact.id for fact in pinned}
        others = [record for record in hits if record.id not in shown][: PREFETCHED - len(pinned)]
        block, self._recalled = render.recalled(others, query, pinned)
        if not self._looks_only:
            memory.used([*shown, *(record.id for record in others if record.role is Role.FACT)])
        return block

    def _pinned(self, found: list[int]) -> list[Fact]:
        """The pinned facts to show: those that were *found* first, then the newest."""
        memory = self.memory
        pinned = memory.store.facts(memory.scopes, pinned=True)
        pinned.sort(key=lambda fact: found.index(fact.id) if fact.id in found else len(found))
        return pinned[:PINNED]

    def recall_status(self) -> RecallStatus | None:
        """How many items the last ``prefetch`` gave."""
        return RecallStatus("local", self._recalled) if self._recalled else None

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Search and list; and, where a person takes part, remember, update and forget."""
        offered = tools.READING if self._context in _NOT_THE_PERSON else (*tools.READING, *tools.WRITING)
        return json.loads(json.dumps(offered))  # type: ignore[no-any-return] # a copy, all the way down

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of the tools; what is wrong comes back as ``error``."""
        if tool_name not in tools.CALLS:
            return super().handle_tool_call(tool_name, args, **kwargs)
        try:
            if not isinstance(args, dict):
                raise UsageError("the arguments must be an object")
            if self._context in _NOT_THE_PERSON and tool_name not in (tools.SEARCH, tools.LIST):
                raise UsageError(f"nothing is written in a run of kind {self._context!r}")
            session = str(kwargs.get("session_id") or self._session)
            source = Source(session, self._turn, tool=tool_name, person=self._person)
            reply = tools.CALLS[tool_name](self.memory, args, source)
        except HermesError as exc:
            reply = tools.refusal(exc)
        return json.dumps(reply, ensure_ascii=False)

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """Note which turn it is: facts that are remembered say so."""
        self._turn = turn_number

    # -- writing -----------------------------------------------------------------------------------------

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        turn_author: str | None = None,
        idempotency_key: str = "",
        turn_time: float | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        """Store one turn, durably, on return; the same *idempotency_key* once.

        Raises StoreUnavailable if it could not be (try again), PermanentError for what can never be.
        """
        self.sync_turns(
            [
                {
                    "user_content": user_content,
                    "assistant_content": assistant_content,
                    "session_id": session_id,
                    "turn_author": turn_author,
                    "idempotency_key": idempotency_key,
                    "turn_time": turn_time,
                    "identity": identity,
                }
            ]
        )

    def sync_turns(self, turns: Iterable[dict[str, Any]]) -> int:
        """Store many turns, all or none; each maps the arguments of ``sync_turn``. How many were new."""
        if self._context in _NOT_THE_PERSON:
            return 0
        by_scope: dict[str, list[Turn]] = {}
        for given in turns:
            by_scope.setdefault(self._scope_for(given.get("identity")), []).append(self._turn_of(given))
        new = sum(self.memory.store.add(those, scope) for scope, those in by_scope.items())
        self.memory.stored(new)
        self._embed()
        return new

    def _scope_for(self, identity: Mapping[str, Any] | None) -> str:
        """Where what belongs to *identity* goes: the journal hands over what other sessions have left, too."""
        if not identity:
            return self.memory.scope
        return self._scopes(str(identity.get("session_id") or ""), identity)[0]

    def _scopes(self, session_id: str, given: Mapping[str, Any]) -> list[str]:
        """The scope that is written to, and those that are seen besides."""
        scope = scope_of(session_id, given)
        return [project_of(given), scope] if scope == OWNER and self._options.project else [scope]

    def _turn_of(self, given: dict[str, Any]) -> Turn:
        get = given.get
        user, assistant = get("user_content") or "", get("assistant_content") or ""
        if not (isinstance(user, str) and isinstance(assistant, str)):
            raise PermanentError("a turn must be text", next_step="flatten its content before it is synced")
        return Turn(
            str(get("session_id") or self._session),
            user,
            assistant,
            self._time(get("turn_time")),
            str(get("turn_author") or ""),
            str(get("idempotency_key") or ""),
        )

    def _time(self, given: Any) -> float:
        if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
            return float(given)
        return self._clock()

    def on_memory_write(
        self,
        action: str,
        target: str,
        content: str,
        metadata: dict[str, Any] | None = None,
        *,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        """Mirror an entry of the built-in memory; what is removed or replaced is gone from the file."""
        about = metadata or {}
        if action not in ("add", "replace", "remove"):
            raise PermanentError(f"no such change of the memory: {action!r}")
        previous = str(about.get("previous_content") or about.get("old_text") or "")
        scope = self._scope_for(identity)
        self.memory.store.note(action, target, content or "", previous, scope, self._clock())

    # -- sessions ----------------------------------------------------------------------------------------

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        identity: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Go on in another session; a branch carries its parent's messages with it."""
        if identity and identity.get("session_id") != self._started:
            return  # another session has moved on
        branched = kwargs.get("reason") == "branch" and bool(parent_session_id)
        self._in_context = {new_session_id, *([parent_session_id] if branched else [])}
        self._session = new_session_id

    def on_pre_compress(self, messages: list[Message], *, require_checkpoint: bool = False) -> str:
        """The messages leave the model's sight: from now on they may be recalled."""
        self._in_context.clear()
        return ""

    # -- what is stored ----------------------------------------------------------------------------------

    def _everyone(self) -> str | None:
        """The scope of the person's own commands: the owner of the profile sees all that is in it."""
        scopes = self.memory.scopes
        return None if OWNER in scopes else scopes[0]

    def search_records(self, query: str, *, limit: int = 10) -> list[dict[str, Any]] | None:
        """Stored messages and facts that match, best first."""
        return [
            render.as_dict(hit.record) | {"score": round(hit.score, 4)}
            for hit in self.memory.recall(query, limit)
        ]

    def export_records(self) -> Iterator[dict[str, Any]]:
        """Everything stored: messages in order of sessions, then facts, the former ones too."""
        from hermes.plugins.memory.local import transfer

        return transfer.records(self.memory.store, self._everyone())

    def forget_records(self, *, session_id: str | None = None) -> int | None:
        """Delete what is stored of *session_id*, or everything; how many messages and facts."""
        return self.memory.store.forget(self._everyone(), session_id=session_id)


def _of_facts(totals: Totals) -> dict[str, Any]:
    counts = {"facts": totals.facts, "pinned": totals.pinned, "former_facts": totals.former_facts}
    return {label: count for label, count in counts.items() if count or label == "facts"}


def _of_retention(limits: Limits) -> dict[str, Any]:
    """What is let go by itself, in words; nothing where nothing is."""
    said = [f"{limits.max_age / 86400:g} days"] if limits.max_age else []
    said += [f"{limits.max_turns} turns"] if limits.max_turns else []
    said += [f"{limits.max_bytes} bytes"] if limits.max_bytes else []
    return {"retention": f"at most {', '.join(said)}; facts stay"} if said else {}
