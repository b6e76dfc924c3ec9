"""The contract of a memory provider.

The smallest provider that works is two files::

    # plugins/my-notes/plugin.yaml
    name: my-notes
    version: 1.0.0
    description: Remembers every turn in one text file.

    # plugins/my-notes/__init__.py
    from pathlib import Path
    from hermes.memory.provider import MemoryProvider

    class MyNotes(MemoryProvider):
        name = "my-notes"

        def is_available(self):
            return True

        def initialize(self, session_id, **kwargs):
            self.file = Path(kwargs["hermes_home"]) / "my-notes.txt"

        def get_tool_schemas(self):
            return []

        def sync_turn(self, user_content, assistant_content, *, session_id=""):
            with self.file.open("a", encoding="utf-8") as notes:
                notes.write(f"{user_content}\n{assistant_content}\n")

    def register(ctx):
        ctx.register_memory_provider(MyNotes())

Standard library only: worker processes import this module.
"""

from __future__ import annotations

import contextvars
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Message = dict[str, Any]
"""One OpenAI-style message: ``role``, ``content``, and what goes with them."""

INDICATOR_GLYPH = "✦"
PRE_COMPRESS_CHECKPOINT_API_VERSION = 2
BUILTIN = "builtin"
CORE_MEMORY_PROVIDER_SENTINELS = frozenset({"", "none", "off", "builtin", "built-in", "default"})


def is_core_memory_provider(name: str | None) -> bool:
    """True where *name*, as found in a settings file, asks for the built-in memory alone."""
    return (name or "").strip().lower() in CORE_MEMORY_PROVIDER_SENTINELS


@dataclass(frozen=True)
class RecallStatus:
    """What the last recall found, for an indicator: who answered, how many items, and a mark to show."""

    provider_label: str
    count: int
    glyph: str = INDICATOR_GLYPH


class MemoryProvider(ABC):
    """Base class of memory providers. Four members are abstract; the rest have working defaults."""

    pre_compress_checkpoint_api_version: ClassVar[int] = 1
    """2: ``on_pre_compress`` is a checkpoint, and one that fails stops the compression."""

    delivery: ClassVar[Literal["accepted", "stored"]] = "accepted"
    """What a normal return of ``sync_turn``, ``on_memory_write`` and ``on_session_end`` means.

    ``"accepted"``: taken over, worked on later, errors swallowed. ``"stored"``: the backend has it; the
    member raises where it has not, and is called on a worker, never on a turn.
    """

    # -- needed ------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def name(self) -> str:
        """Short identifier; ``"builtin"`` is reserved."""

    @abstractmethod
    def is_available(self) -> bool:
        """True if it is configured and can start. Looks at settings and installed packages; no network."""

    @abstractmethod
    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Start for a session. *kwargs* always hold ``hermes_home`` and ``platform``; raise if it cannot be."""

    @abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools offered to the model, as OpenAI function schemas; an empty list for none."""

    # -- state -------------------------------------------------------------------------------------------

    def unavailable_reason(self) -> str:
        """Why ``is_available`` said no, for the person."""
        return ""

    def initialize_for_inspection(self, session_id: str, **kwargs: Any) -> None:
        """Start for looking only (status, prompt preview): create nothing if that can be avoided."""
        self.initialize(session_id, **kwargs)

    def identity_signature(self) -> dict[str, Any]:
        """What makes two sessions different for this provider, for a host that caches agents."""
        return {}

    def shutdown(self) -> None:
        """End: write what waits, close what is open."""

    # -- reading -----------------------------------------------------------------------------------------

    def system_prompt_block(self) -> str:
        """Static text for the system prompt; empty for none."""
        return ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """What is known about *query*, as text for the model; empty if nothing was found."""
        return ""

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """A turn has ended: warm up for the next."""

    def recall_status(self) -> RecallStatus | None:
        """What the last ``prefetch`` found, for the indicator."""
        return None

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of the tools of ``get_tool_schemas``; the result is JSON text."""
        raise NotImplementedError(f"provider {self.name} has no tool {tool_name}")

    # -- writing -----------------------------------------------------------------------------------------

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[Message] | None = None,
        turn_author: str | None = None,
    ) -> None:
        """Keep one completed turn.

        A provider may name more keyword arguments and is then given them: ``idempotency_key`` (text; the
        same for every attempt to hand over this turn), ``turn_time`` (when it was said, Unix seconds) and
        ``identity`` (what ``initialize`` was given of ``platform``, ``user_id``, ``chat_id`` and the like in
        the session it belongs to: another session's turn may be delivered to this one's provider).

        A provider that names ``idempotency_key`` may also have ``sync_turns(turns)``: a list of mappings, each
        with these arguments by name, some left out. It takes all of them or none, and raises for none.
        """

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None
    ) -> None:
        """Built-in memory changed: *action* ``add``, ``replace`` or ``remove`` on *target* ``memory`` or ``user``.

        *content* is the entry as it is now, or the entry that was removed. *metadata* may hold ``old_text``,
        ``previous_content``, ``session_id``, ``parent_session_id``, ``platform``, ``tool_name``,
        ``write_origin``, ``execution_context`` and ``idempotency_key``.
        """

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> None:
        """A subagent has finished *task*."""

    # -- sessions ----------------------------------------------------------------------------------------

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """A turn begins with the person's *message*."""

    def on_session_end(self, messages: list[Message]) -> None:
        """A session has really ended; *messages* is its transcript."""

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """The conversation goes on in another session: new, resumed, branched, reset, compressed or undone."""

    def on_pre_compress(self, messages: list[Message], *, require_checkpoint: bool = False) -> str:
        """*messages* are about to be summarised away; the text returned reaches the summary."""
        return ""

    # -- setup -------------------------------------------------------------------------------------------

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The fields that ``hermes memory setup`` asks for."""
        return []

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Keep the non-secret answers of the setup."""

    def get_status_config(self, provider_config: dict[str, Any]) -> dict[str, Any]:
        """What ``hermes memory status`` shows of this provider, label to value; no secrets."""
        return {k: v for k, v in provider_config.items() if isinstance(v, str | int | float | bool)}

    def backup_paths(self) -> list[str]:
        """State that lies outside ``hermes_home``."""
        return []

    # -- what is stored: for the person's own commands ----------------------------------------------------

    def search_records(self, query: str, *, limit: int = 10) -> list[dict[str, Any]] | None:
        """Stored items that match, best first: ``id``, ``text``, ``time`` (Unix seconds), ``session_id``.

        None where this provider cannot be searched.
        """
        return None

    def export_records(self) -> Iterable[dict[str, Any]] | None:
        """Everything stored, as JSON-able mappings; None where this provider cannot give it out."""
        return None

    def forget_records(self, *, session_id: str | None = None) -> int | None:
        """Delete what is stored of *session_id*, or everything; how many items, None where it cannot."""
        return None


_TRIVIAL = re.compile(
    r"(?:/[a-z][\w-]*(?:\s.*)?|(?:hi|hey|hello|yo|thanks?|thank you|thx|ok(?:ay)?|k|yes|yep|yeah|no|nope|"
    r"sure|cool|nice|great|"
    r"good (?:morning|afternoon|evening|night)|bye|got it|done|go on|continue|please continue|"
    r"你好|谢谢|好的?|是的?|嗯|hallo|danke|ja|nein)[\s.!?,。！？~]*)\Z",
    re.IGNORECASE | re.DOTALL,
)


def is_trivial_prompt(text: str | None) -> bool:
    """True for a text not worth a recall: empty, a slash command, a bare greeting or acknowledgement."""
    stripped = (text or "").strip()
    return not stripped or _TRIVIAL.match(stripped) is not None


def ctx_bound(fn: Callable[..., Any]) -> Callable[..., Any]:
    """*fn*, to be called later in the context variables of now."""
    context = contextvars.copy_context()

    def bound(*args: Any, **kwargs: Any) -> Any:
        return context.copy().run(fn, *args, **kwargs)

    return bound


def spawn_context_thread(
    target: Callable[..., Any],
    *,
    name: str,
    daemon: bool = True,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> threading.Thread:
    """An unstarted thread that runs *target* in the caller's context variables."""
    return threading.Thread(
        target=ctx_bound(target), name=name, daemon=daemon, args=tuple(args), kwargs=dict(kwargs or {})
    )
