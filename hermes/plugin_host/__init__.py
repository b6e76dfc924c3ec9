"""Finding plugins, reading what they say of themselves, and loading the one that is chosen."""

from hermes.plugin_host.catalog import Catalog, Plugin

__all__ = ["Catalog", "Plugin"]
