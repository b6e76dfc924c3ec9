"""The host modules, by the names that plugins know them by."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from hermes.plugin_host.host import Host

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def served(hermes_host_modules: Host, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a host module. The root of this repository, which has a ``plugins/`` too, is off the path."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT])
    return importlib.import_module
