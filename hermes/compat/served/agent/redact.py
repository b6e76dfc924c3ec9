"""Masking secrets in a text."""

from __future__ import annotations

from typing import Any

from hermes.memory.redact import redact_text


def redact_sensitive_text(text: Any, **_: Any) -> Any:
    """*text* with its secrets masked; what is no text comes back as it is. Other hosts' options change nothing."""
    return redact_text(text) if isinstance(text, str) else text


def mask_secret(value: str | None, *, placeholder: str = "***", empty: str = "") -> str:
    """What may be shown of a secret: its last four characters where it is long, else nothing of it."""
    if not value:
        return empty
    return f"{placeholder}{value[-4:]}" if len(value) >= 12 else placeholder
