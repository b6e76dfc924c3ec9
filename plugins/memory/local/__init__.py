"""Local memory: every turn in one SQLite file of the profile."""

from __future__ import annotations

from typing import Any


def register(ctx: Any) -> None:
    """Offer the provider to the host."""
    from hermes.plugins.memory.local.provider import LocalMemoryProvider

    provider = LocalMemoryProvider(config=lambda: ctx.config, secret=lambda name: ctx.secret(name))
    ctx.register_memory_provider(provider)
