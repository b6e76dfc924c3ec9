"""Who writes: the agent that a person talks to, or a review behind it."""

from __future__ import annotations

from contextvars import ContextVar, Token

BACKGROUND_REVIEW = "background_review"
_origin: ContextVar[str] = ContextVar("hermes_write_origin", default="foreground")


def get_current_write_origin() -> str:
    """``foreground``, or what was set in this context."""
    return _origin.get()


def set_current_write_origin(origin: str) -> Token[str]:
    """Have writes of this context come from *origin*."""
    return _origin.set(origin)


def reset_current_write_origin(token: Token[str]) -> None:
    """Undo the ``set_current_write_origin`` that gave *token*."""
    _origin.reset(token)


def is_background_review() -> bool:
    """Whether a review writes."""
    return _origin.get() == BACKGROUND_REVIEW
