"""Local memory: every turn in one SQLite file of the profile."""

from __future__ import annotations

from typing import Any


def register(ctx: Any) -> None:
    """Offer the provider to the host."""
    from hermes.plugins.memory.local.provider import LocalMemoryProvider

    ctx.register_memory_provider(LocalMemoryProvider())
