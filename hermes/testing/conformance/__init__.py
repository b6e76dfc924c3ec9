"""Does a memory provider keep the contract? Every rule is a check, run in a process of its own.

::

    from pathlib import Path
    from hermes.testing.conformance import examine

    report = examine(Path("my-notes"))
    assert not report.errors, report

``hermes plugins check PATH|NAME`` prints the same, ``pytest --hermes-provider PATH`` makes each check a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.errors import NotFound
from hermes.testing.conformance.checks import CHECKS, Check
from hermes.testing.conformance.findings import Finding, Outcome, Report, Where
from hermes.testing.conformance.runner import Examination

if TYPE_CHECKING:
    from hermes.plugin_host.plugin import Plugin

__all__ = [
    "CHECKS",
    "Check",
    "Examination",
    "Finding",
    "Outcome",
    "Report",
    "Where",
    "examine",
    "plugin_in",
]


def plugin_in(folder: Path) -> Plugin:
    """The plugin that lies in *folder*, taken for a memory provider. Raises ``NotFound``."""
    from hermes.plugin_host.folders import of_kind
    from hermes.plugin_host.plugin import MEMORY, PROFILE

    place = folder.absolute()
    if place.name in ("", ".."):
        place = place.resolve()
    found = next(of_kind(place.parent, PROFILE, MEMORY, place.name), None)
    if found is None:
        raise NotFound(f"there is no plugin in {folder}", next_step="name the folder with its __init__.py")
    if found.problem:
        raise NotFound(f"{folder}: {found.problem}", next_step="a plugin is a folder with an __init__.py")
    return found


def examine(plugin: Plugin | Path, answers: Mapping[str, Any] | None = None) -> Report:
    """Every check of *plugin*; *answers* fill in fields of its form, such as the address of a test server.

    Raises ``NotFound`` for a path where no plugin lies.
    """
    return Examination(plugin_in(plugin) if isinstance(plugin, Path) else plugin, answers).report()
