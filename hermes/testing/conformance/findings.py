"""What came out of a check: findings, each with where it is, why it matters and how to mend it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import attrs


class Where(NamedTuple):
    """A place in a file; line 0 where it is the file as a whole."""

    file: str = ""
    line: int = 0

    def relative_to(self, folder: Path | None) -> str:
        """As a person reads it: below *folder*, or among the installed packages, without that."""
        path = Path(self.file)
        shown = path.relative_to(folder) if folder and path.is_relative_to(folder) else path
        if "site-packages" in shown.parts:
            shown = Path(*shown.parts[shown.parts.index("site-packages") + 1 :])
        return f"{shown}:{self.line}" if self.line else str(shown)


@attrs.frozen
class Finding:
    """One thing that is wrong with a provider."""

    check: str
    severity: Literal["error", "warning"]
    what: str
    why: str
    mend: str
    file: str = ""
    line: int = 0

    @property
    def where(self) -> Where:
        """The place of it."""
        return Where(self.file, self.line)


@attrs.frozen
class Outcome:
    """One check that was run."""

    check: str
    rule: str
    findings: tuple[Finding, ...] = ()
    not_tried: str = ""
    """Why it could not be tried to its end; empty where it was."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that have to be mended."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def verdict(self) -> str:
        """``error``, ``warning``, ``not tried`` or ``ok``."""
        if self.errors:
            return "error"
        if self.findings:
            return "warning"
        return "not tried" if self.not_tried else "ok"

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**attrs.asdict(self), "verdict": self.verdict}


@attrs.frozen
class Report:
    """Every check of one plugin."""

    plugin: str
    folder: Path | None
    outcomes: tuple[Outcome, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, in the order of the checks."""
        return tuple(finding for outcome in self.outcomes for finding in outcome.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that have to be mended."""
        return tuple(finding for outcome in self.outcomes for finding in outcome.errors)

    def as_dict(self) -> dict[str, Any]:
        """As ``hermes plugins check --json`` prints it."""
        return {
            "plugin": self.plugin,
            "folder": str(self.folder) if self.folder else None,
            "errors": len(self.errors),
            "warnings": len(self.findings) - len(self.errors),
            "checks": [outcome.as_dict() for outcome in self.outcomes],
        }


def finding_of(data: Mapping[str, Any]) -> Finding:
    """A finding as it came out of a process."""
    return Finding(**data)
