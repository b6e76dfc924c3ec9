"""The providers that come with hermes keep every rule that outside ones are checked by."""

from __future__ import annotations

import pytest

from hermes.plugin_host.discovery import MEMORY, Plugin, bundled
from hermes.testing.conformance import examine

BUNDLED = [plugin for plugin in bundled() if plugin.kind == MEMORY]


def test_there_are_bundled_providers() -> None:
    """The test below runs over something."""
    assert "local" in {plugin.name for plugin in BUNDLED}


@pytest.mark.parametrize("plugin", BUNDLED, ids=lambda plugin: plugin.name)
def test_a_bundled_provider_keeps_every_rule(plugin: Plugin) -> None:
    """Neither errors nor warnings, and nothing that could not be tried but for a backend that is elsewhere."""
    report = examine(plugin)
    assert report.findings == ()
    assert all("backend" in outcome.not_tried or not outcome.not_tried for outcome in report.outcomes), (
        report.outcomes
    )
