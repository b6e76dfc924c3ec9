"""dynaconf holds the sections of one profile; what feeds it is ours: no file search, no environment.

The only module that imports dynaconf. Left to itself it reads variables of the process whatever its options
say, runs a ``dynaconf_hooks.py`` that lies beside a settings file, obeys ``@read_file`` in a value, and hands
one profile's ``.env`` to the next; nothing of that is reached here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hermes.quiet import importing
from hermes.settings.layers import deep_merge

with importing("dynaconf"):
    from dynaconf.base import Settings
    from dynaconf.loaders.base import SourceMetadata

Feed = Callable[[], Iterable[tuple[str, str, Mapping[str, Mapping[Any, Any]]]]]
"""Gives, for every layer from the lowest, its kind, its source and its sections; asked again on reload."""

FIXED: dict[str, Any] = {
    "APPLY_DEFAULT_ON_NONE_FOR_DYNACONF": None,
    "AUTO_CAST_FOR_DYNACONF": False,
    "CORE_LOADERS_FOR_DYNACONF": [],
    "DOTTED_LOOKUP_FOR_DYNACONF": False,
    "DYNABOXIFY": False,
    "DYNACONF_ALWAYS_FRESH_VARS": [],
    "ENVIRONMENTS_FOR_DYNACONF": False,
    "ENV_FOR_DYNACONF": "main",
    "FORCE_ENV_FOR_DYNACONF": None,
    "FRESH_VARS_FOR_DYNACONF": [],
    "INCLUDES_FOR_DYNACONF": [],
    "INDEX_SEPARATOR_FOR_DYNACONF": False,
    "LOADERS_FOR_DYNACONF": [],
    "LOWERCASE_READ_FOR_DYNACONF": True,
    "MAIN_ENV_FOR_DYNACONF": "main",
    "MERGE_ENABLED_FOR_DYNACONF": False,
    "NESTED_SEPARATOR_FOR_DYNACONF": "\0",
    "SILENT_ERRORS_FOR_DYNACONF": False,
    "SYSENV_FALLBACK_FOR_DYNACONF": False,
    "VALIDATE_ON_UPDATE_FOR_DYNACONF": False,
}
"""What dynaconf asks of itself while it stores a value: given here, never taken from the environment."""


class ProfileSettings(Settings):  # type: ignore[misc]
    """The merged sections of one profile."""

    def __init__(self, feed: Feed) -> None:
        object.__setattr__(self, "_hermes_feed", feed)
        super().__init__(**copy.deepcopy(FIXED))

    def execute_loaders(
        self, env: Any = None, silent: Any = None, key: Any = None, filename: Any = None, loaders: Any = None
    ) -> None:
        """Take every layer in, lowest first; what dynaconf would look for by itself is not looked for."""
        held = self.store  # a reload has emptied it; the first load finds what __init__ put there
        for name, value in FIXED.items():
            if name not in held:
                self.set(name, copy.deepcopy(value), loader_identifier="fixed", validate=False)
        merged: dict[str, Any] = {}
        for kind, source, sections in self._hermes_feed():
            merged = deep_merge(merged, sections)
            self.update(
                {name: _copy(merged[name]) for name in sections},
                loader_identifier=SourceMetadata(kind, source, "hermes"),
                merge=False,
                validate=False,
                tomlfy=False,
            )

    def sections(self) -> dict[str, dict[Any, Any]]:
        """The sections that any layer has, merged."""
        names = {name for _, _, sections in self._hermes_feed() for name in sections}
        return {name: self.get(name) for name in sorted(names)}


def _copy(section: Mapping[Any, Any]) -> dict[Any, Any]:
    # dynaconf changes what it is given, and takes these two keys for orders to itself
    return {
        k: copy.deepcopy(v)
        for k, v in section.items()
        if k not in ("dynaconf_merge", "dynaconf_merge_unique")
    }
