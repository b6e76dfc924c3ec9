"""The built-in context engine."""

from typing import Any

from hermes.plugins.context_engine.compressor.compressor import Compressor


def register(ctx: Any) -> None:
    """Offer the engine; it summarises with the model of the profile."""
    ctx.register_context_engine(Compressor(ctx.llm))
