"""What is known of a plugin that was found and not loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs

from hermes.plugin_host.manifest import Manifest, read

MEMORY, CONTEXT_ENGINE, GENERAL = "memory", "context_engine", "general"
KINDS = (MEMORY, CONTEXT_ENGINE)
"""The kinds that a setting chooses one of, each with a folder of its own."""
BUNDLED, PROFILE, ROOT, PACKAGE = "bundled", "profile", "root", "package"
PLAIN_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
"""A name that can be chosen; never a path."""


@attrs.frozen
class Plugin:
    """One plugin that was found, not loaded."""

    name: str
    """Of its folder or its entry point; what the provider calls itself may differ."""
    kind: str
    """``memory``, ``context_engine`` or ``general``."""
    source: str
    """``bundled``, ``profile``, ``root`` or ``package``."""
    path: Path | None = None
    """Its folder; None for a package whose folder cannot be told without importing it."""
    package: str = ""
    """The folder below ``path`` that is imported, where it is not ``path`` itself."""
    entry: str = ""
    """``module`` or ``module:attribute`` of an installed package; empty for a plugin in a folder."""
    site: Path | None = None
    """Where the modules of an installed package are imported from."""
    distribution: str = ""
    version: str = ""
    decided: str = ""
    """How its kind was told."""
    shadowed: tuple[str, ...] = ()
    """Others of the same name that lost, each as a text that says where it lies."""
    note: str = ""
    """What is wrong with it and does not keep it from being loaded."""
    problem: str = ""
    """Why it cannot be loaded, as far as that can be said without importing it."""

    @property
    def manifest(self) -> Manifest:
        """What its ``plugin.yaml`` says, read now."""
        if self.path is None:
            return Manifest(problem="its folder cannot be told without importing it")
        found = read(self.path)
        return read(self.path / self.package) if self.package and found.problem else found

    @property
    def where(self) -> str:
        """Where it comes from, for a person."""
        if self.distribution:
            return f"package {self.distribution}" + (f" {self.version}" if self.version else "")
        return f"{self.source} {self.path}" if self.path else self.source

    def spec(self) -> dict[str, Any]:
        """What ``loading.load`` needs, as JSON: it may go to another process.

        ``path`` is the folder with the ``__init__.py``, ``root`` the one that a process of its own puts on its
        search path: where a package is imported from, or so that a module in a folder can import the one
        beside it by its bare name.
        """
        root = self.site or self.path
        return {
            "name": self.name,
            "kind": self.kind,
            "path": str(self.path / self.package) if self.path else None,
            "root": str(root) if root else None,
            "entry": self.entry,
            "bundled": self.source == BUNDLED,
        }
