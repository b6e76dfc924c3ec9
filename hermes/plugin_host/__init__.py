"""Finding plugins, reading what they say of themselves, loading the one that is chosen, and running it.

Worker processes import modules of this package that need the standard library only, so this file imports
nothing by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.plugin_host.catalog import Catalog
    from hermes.plugin_host.discovery import Plugin

__all__ = ["Catalog", "Plugin"]


def __getattr__(name: str) -> Any:
    if name == "Catalog":
        from hermes.plugin_host.catalog import Catalog

        return Catalog
    if name == "Plugin":
        from hermes.plugin_host.discovery import Plugin

        return Plugin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
