"""The contract of a context engine, the plugin that makes room when a conversation grows too long.

One is active, chosen by ``context.engine``; every agent has an object of its own. An engine is registered
with ``ctx.register_context_engine(engine)``. Standard library only: worker processes import this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

Message = dict[str, Any]


class ContextEngine(ABC):
    """Base class of context engines. Four members are abstract; the rest have working defaults.

    The attributes are read by the host: the first three are what the last call to the model cost, the
    next three follow from the model and count, and the others say where an engine shall not touch.
    """

    last_prompt_tokens: int = 0
    last_completion_tokens: int = 0
    last_total_tokens: int = 0
    context_length: int = 0
    """Tokens that the model takes in one call; 0 where it is not known."""
    threshold_tokens: int = 0
    """Tokens above which the engine compresses."""
    compression_count: int = 0

    threshold_percent: float = 0.75
    protect_first_n: int = 3
    protect_last_n: int = 6

    @property
    @abstractmethod
    def name(self) -> str:
        """Short identifier, as ``context.engine`` names it."""

    @abstractmethod
    def update_from_response(self, usage: Mapping[str, Any]) -> None:
        """The model has answered: *usage* has ``prompt_tokens``, ``completion_tokens``, ``total_tokens``."""

    @abstractmethod
    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Whether the conversation is too long, at *prompt_tokens* (None: those of the last call)."""

    @abstractmethod
    def compress(
        self,
        messages: list[Message],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
        force: bool = False,
        memory_context: str = "",
    ) -> list[Message]:
        """A shorter list of messages that says the same; *messages* stays as it is.

        *focus_topic* is what the person wants kept in most detail, *memory_context* what the memory
        providers want in the summary. With *force* it was asked for, however short the conversation is.
        May raise: the conversation then goes on uncompressed.
        """

    def should_compress_preflight(self, messages: list[Message]) -> bool:
        """Whether *messages* are too long already, before the model is called."""
        return False

    def has_content_to_compress(self, messages: list[Message]) -> bool:
        """Whether there is anything between what is protected."""
        return True

    def on_session_start(self, session_id: str, **kwargs: Any) -> None:
        """A session begins, or goes on."""

    def on_session_end(self, session_id: str, messages: list[Message]) -> None:
        """A session has ended; *messages* is its transcript."""

    def on_session_reset(self) -> None:
        """A new session takes the place of the old one: counters start anew."""
        self.last_prompt_tokens = self.last_completion_tokens = self.last_total_tokens = 0
        self.compression_count = 0

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Tools offered to the model, as OpenAI function schemas."""
        return []

    def handle_tool_call(self, name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run one of these tools; the result is JSON text."""
        raise NotImplementedError(f"context engine {self.name} has no tool {name}")

    def get_status(self) -> dict[str, Any]:
        """What ``/usage`` shows."""
        return {
            "last_prompt_tokens": self.last_prompt_tokens,
            "threshold_tokens": self.threshold_tokens,
            "context_length": self.context_length,
            "compression_count": self.compression_count,
        }

    def update_model(self, model: str, context_length: int, **kwargs: Any) -> None:
        """The model is *model*, with *context_length* tokens; it may change in the middle of a session."""
        self.context_length = context_length
        self.threshold_tokens = int(context_length * self.threshold_percent)
