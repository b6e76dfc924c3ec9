"""The context engine that the settings name, or the built-in one where that cannot be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes.errors import ProviderUnavailable

if TYPE_CHECKING:
    from hermes.context.engine import ContextEngine
    from hermes.plugin_host import Catalog

BUILTIN = "compressor"


def choose(
    name: str, plugins: Catalog, ask: Callable[[list[dict[str, Any]]], str], warn: Callable[[str], object]
) -> ContextEngine:
    """A new engine *name*; *ask* has the model answer messages. *warn* is told why the built-in one is used instead."""
    try:
        engine: ContextEngine = plugins.context_engine(name, ask)
    except ProviderUnavailable as exc:
        if name == BUILTIN:
            raise
        warn(f"context engine {name!r}: {exc.reason}; {BUILTIN} is used ({exc.next_step})")
        engine = plugins.context_engine(BUILTIN, ask)
    return engine
