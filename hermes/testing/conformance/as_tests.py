"""The checks as tests of pytest: a finding to mend fails one, another is a warning of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import HermesError
from hermes.testing.conformance import CHECKS, Examination, Finding, plugin_in


class ConformanceWarning(pytest.PytestWarning):
    """Something that should be mended in a provider."""


class BrokenRules(Exception):
    """What has to be mended."""


class Checks(pytest.Collector):
    """The checks of one provider."""

    def collect(self) -> list[Any]:
        """None: they are added to what was collected."""
        return []


class CheckItem(pytest.Item):
    """One check of a provider."""

    def __init__(self, *, examination: Examination, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._examination = examination

    def runtest(self) -> None:
        """Run it."""
        outcome = self._examination.run(self.name)
        folder = self._examination.folder
        for finding in outcome.findings:
            if finding.severity == "warning":
                said = ConformanceWarning(_said(finding, folder))
                warnings.warn_explicit(said, None, finding.file, finding.line)
        if outcome.errors:
            raise BrokenRules("\n".join(_said(finding, folder) for finding in outcome.errors))
        if outcome.not_tried:
            pytest.skip(f"not tried to its end: {outcome.not_tried}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The findings alone; anything else as ever."""
        if isinstance(excinfo.value, BrokenRules | ConformanceWarning):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The folder of the provider, and the rule."""
        return self.path, None, f"{self.name}: {CHECKS[self.name].rule}"


def tests_of(session: pytest.Session, folder: Path) -> Iterator[pytest.Item]:
    """A test for each check of the provider in *folder*."""
    try:
        examination = Examination(plugin_in(folder))
    except HermesError as exc:
        raise pytest.UsageError(f"--hermes-provider: {exc}") from exc
    name = f"hermes-provider[{examination.plugin.name}]"
    parent = Checks.from_parent(session, name=name, path=folder, nodeid=name)
    for check in CHECKS:
        yield CheckItem.from_parent(parent, name=check, examination=examination)


def _said(finding: Finding, folder: Path | None) -> str:
    where = finding.where.relative_to(folder)
    return f"{where}: {finding.what}\n  why: {finding.why}\n  mend: {finding.mend}"
