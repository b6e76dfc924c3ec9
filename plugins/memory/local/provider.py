"""The provider ``local``: what the host calls, in terms of a store and a search."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hermes.errors import HermesError, PermanentError, ProviderUnavailable, UsageError
from hermes.memory.provider import MemoryProvider, Message, RecallStatus, is_trivial_prompt
from hermes.plugins.memory.local import render, tools
from hermes.plugins.memory.local.records import OWNER, Record, Store, Turn
from hermes.plugins.memory.local.scopes import scope_of

if TYPE_CHECKING:
    from hermes.plugins.memory.local.ranking import Weights
    from hermes.plugins.memory.local.recall import Hit

PREFETCHED = 8
"""Items given to the model before each call, at most."""
_NOT_THE_PERSON = frozenset({"cron", "flush", "subagent"})
_PROMPT = (
    "Earlier conversations are stored word for word and the fitting ones are shown before each turn. "
    "Use local_search to look for more, and local_forget only when the user asks to delete something."
)


class LocalMemoryProvider(MemoryProvider):
    """Every turn in one SQLite file of the profile; recall by words."""

    delivery: ClassVar[Literal["accepted", "stored"]] = "stored"

    def __init__(self, *, clock: Callable[[], float] = time.time, weights: Weights | None = None) -> None:
        self._clock = clock
        self._weights = weights
        self._store: Store | None = None
        self._path: Path | None = None
        self._scope = ""
        self._session = ""
        self._context = ""
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
        if self._store is None or path != self._path:
            from hermes.plugins.memory.local.store import SqliteStore

            self.shutdown()
            self._store, self._path = SqliteStore(path), path
        self._session = session_id
        self._scope = scope_of(session_id, kwargs)
        self._context = str(kwargs.get("agent_context") or "primary")
        self._in_context = {session_id}

    def identity_signature(self) -> dict[str, Any]:
        """The file and the scope."""
        return {"path": str(self._path or ""), "scope": self._scope}

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
            "tier": "lexical",
        }
        if totals.people > 1:
            shown["people"] = totals.people
        if totals.last_write:
            shown["newest"] = totals.last_write
        if totals.journal_mode not in ("", "wal"):
            shown["journal"] = f"{totals.journal_mode} (no write-ahead log here: writers and readers wait)"
        return shown

    def shutdown(self) -> None:
        """Close the file; every turn was stored when it was taken."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _open(self) -> Store:
        if self._store is None:
            raise ProviderUnavailable(self.name, "it is not initialized", next_step="call initialize first")
        return self._store

    # -- reading -----------------------------------------------------------------------------------------

    def system_prompt_block(self) -> str:
        """What the model should know of this memory; always the same."""
        return _PROMPT

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What earlier sessions hold on *query*; empty if nothing fits. The current session is left out."""
        self._recalled = 0
        if is_trivial_prompt(query):
            return ""
        seen = [*self._in_context, *([session_id] if self._in_context and session_id else [])]
        hits = self._recall(query, PREFETCHED, seen)
        block, self._recalled = render.recalled([hit.record for hit in hits if hit.relevant], query)
        return block

    def recall_status(self) -> RecallStatus | None:
        """How many items the last ``prefetch`` gave."""
        return RecallStatus("local", self._recalled) if self._recalled else None

    def _recall(self, query: str, limit: int, without: Sequence[str] = ()) -> Sequence[Hit]:
        from hermes.plugins.memory.local.recall import Recall

        return Recall(self._open(), self._scope, self._weights).search(
            query, now=self._clock(), limit=limit, without=without
        )

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Search, list, forget."""
        return json.loads(json.dumps(tools.SCHEMAS))  # type: ignore[no-any-return] # a copy, all the way down

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of the three tools; what is wrong comes back as ``error``."""
        run = {tools.SEARCH: self._tool_search, tools.LIST: self._tool_list, tools.FORGET: self._tool_forget}
        if tool_name not in run:
            return super().handle_tool_call(tool_name, args, **kwargs)
        try:
            if not isinstance(args, dict):
                raise UsageError("the arguments must be an object")
            reply = run[tool_name](args)
        except HermesError as exc:
            reply = {"error": exc.message, "next_step": exc.next_step}
        return json.dumps(reply, ensure_ascii=False)

    def _tool_search(self, args: dict[str, Any]) -> dict[str, Any]:
        query = tools.text_of(args, "query", required=True)
        hits = self._recall(query, tools.limit_of(args, tools.DEFAULT_LIMIT))
        return {"results": [render.for_tool(hit.record, query) for hit in hits]}

    def _tool_list(self, args: dict[str, Any]) -> dict[str, Any]:
        limit, session = tools.limit_of(args, 20), tools.text_of(args, "session")
        found = self._open().listing(self._scope, session_id=session, limit=limit)
        return {"results": [render.for_tool(record) for record in found]}

    def _tool_forget(self, args: dict[str, Any]) -> dict[str, Any]:
        ids = tools.ids_of(args)
        return {"forgotten": self._open().forget(self._scope, ids=ids), "asked": len(ids)}

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
                }
            ]
        )

    def sync_turns(self, turns: Iterable[dict[str, Any]]) -> int:
        """Store many turns, all or none; each maps the arguments of ``sync_turn``. How many were new."""
        if self._context in _NOT_THE_PERSON:
            return 0
        return self._open().add([self._turn(given) for given in turns], self._scope)

    def _turn(self, given: dict[str, Any]) -> Turn:
        said = given.get("user_content"), given.get("assistant_content")
        if not all(part is None or isinstance(part, str) for part in said):
            raise PermanentError("a turn must be text", next_step="flatten its content before it is synced")
        return Turn(
            session_id=str(given.get("session_id") or self._session),
            user=said[0] or "",
            assistant=said[1] or "",
            time=self._time(given.get("turn_time")),
            author=str(given.get("turn_author") or ""),
            key=str(given.get("idempotency_key") or ""),
        )

    def _time(self, given: Any) -> float:
        if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
            return float(given)
        return self._clock()

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Mirror an entry of the built-in memory; what is removed or replaced is gone from the file."""
        about = metadata or {}
        if action not in ("add", "replace", "remove"):
            raise PermanentError(f"no such change of the memory: {action!r}")
        previous = str(about.get("previous_content") or about.get("old_text") or "")
        self._open().note(action, target, content or "", previous, self._scope, self._clock())

    # -- sessions ----------------------------------------------------------------------------------------

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """Go on in another session; a branch carries its parent's messages with it."""
        branched = kwargs.get("reason") == "branch" and bool(parent_session_id)
        self._in_context = {new_session_id, *([parent_session_id] if branched else [])}
        self._session = new_session_id

    def on_pre_compress(self, messages: list[Message], *, require_checkpoint: bool = False) -> str:
        """The messages leave the model's sight: from now on they may be recalled."""
        self._in_context.clear()
        return ""

    # -- what is stored ----------------------------------------------------------------------------------

    def _person(self) -> str | None:
        """The scope of the person's own commands: the owner of the profile sees all that is in it."""
        return None if self._scope == OWNER else self._scope

    def search_records(self, query: str, *, limit: int = 10) -> list[dict[str, Any]] | None:
        """Stored messages that match, best first."""
        return [
            render.as_dict(hit.record) | {"score": round(hit.score, 4)} for hit in self._recall(query, limit)
        ]

    def export_records(self) -> Iterator[dict[str, Any]]:
        """Everything stored, in order of sessions."""
        records: Iterator[Record] = self._open().listing(self._person())
        return map(render.as_dict, records)

    def forget_records(self, *, session_id: str | None = None) -> int | None:
        """Delete what is stored of *session_id*, or everything; how many messages."""
        return self._open().forget(self._person(), session_id=session_id)
