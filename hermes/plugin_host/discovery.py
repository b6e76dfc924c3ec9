"""Where plugins are found, in which order, and which one a name means. Nothing is imported to find out.

The order: bundled ones, the profile's folder ``plugins/``, the root's, installed packages. The first of a name
and kind wins, and says whom it hides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from hermes.plugin_host import folders, packages
from hermes.plugin_host.plugin import (
    BUNDLED,
    CONTEXT_ENGINE,
    GENERAL,
    KINDS,
    MEMORY,
    PACKAGE,
    PLAIN_NAME,
    PROFILE,
    ROOT,
    Plugin,
)

__all__ = [
    "BUNDLED",
    "CONTEXT_ENGINE",
    "GENERAL",
    "KINDS",
    "MEMORY",
    "PACKAGE",
    "PLAIN_NAME",
    "PROFILE",
    "ROOT",
    "Places",
    "Plugin",
]


@attrs.frozen
class Places:
    """Where to look: the folders *profile* and *root* with plugins, and the path that packages are on.

    *search_path* None is that of this interpreter.
    """

    profile: Path | None = None
    root: Path | None = None
    search_path: Sequence[str] | None = None

    def all(self) -> tuple[Plugin, ...]:
        """Every plugin that a name can mean, sorted by kind and name."""
        first: dict[tuple[str, str], Plugin] = {}
        hidden: dict[tuple[str, str], list[str]] = {}
        for plugin in self._in_order():
            key = (plugin.kind, plugin.name)
            if first.setdefault(key, plugin) is not plugin:
                hidden.setdefault(key, []).append(plugin.where)
        ranks = {kind: rank for rank, kind in enumerate((*KINDS, GENERAL))}
        return tuple(
            attrs.evolve(first[key], shadowed=tuple(hidden.get(key, ())))
            for key in sorted(first, key=lambda key: (ranks[key[0]], key[1]))
        )

    def find(self, name: str, kind: str) -> Plugin | None:
        """The plugin that *name* means as a *kind*.

        One that nothing told the kind of is taken where no other is there: it may well be what is wanted.
        """
        undecided: Plugin | None = None
        for plugin in self._in_order(name):
            if plugin.name != name:
                continue
            if plugin.kind == kind:
                return plugin
            if plugin.kind == GENERAL and undecided is None:
                undecided = plugin
        return undecided

    def _in_order(self, only: str = "") -> Iterator[Plugin]:
        yield from bundled(only)
        if self.profile is not None:
            yield from folders.below(self.profile, PROFILE, only)
        if self.root is not None and self.root != self.profile:
            yield from folders.below(self.root, ROOT, only)
        yield from packages.installed(self.search_path)


def bundled(only: str = "") -> Iterator[Plugin]:
    """The plugins that come with hermes."""
    import hermes.plugins

    for place in map(Path, hermes.plugins.__path__):
        for kind in KINDS:
            yield from folders.of_kind(place / kind, BUNDLED, kind, only)
