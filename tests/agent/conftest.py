"""A provider as an outside author writes it, and a manager that holds it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hermes.plugin_host.host import Host


@pytest.fixture
def notes(hermes_host_modules: Host) -> Any:
    """A provider of ``tests.agent.notes``, which imports its base class from its host."""
    return importlib.import_module("tests.agent.notes").NotesProvider()


@pytest.fixture
def manager(notes: Any, hermes_host_modules: Host) -> Iterator[Callable[..., Any]]:
    """Makes managers with a provider (default: ``notes``) in the profile's home; all are shut down after the test."""
    from agent.memory_manager import MemoryManager

    made = []

    def make(provider: Any = notes, **options: Any) -> Any:
        from pathlib import Path

        one = MemoryManager(home=Path(hermes_host_modules.home()), **options)
        made.append(one)
        assert one.add_provider(provider)
        return one

    yield make
    for one in made:
        one.shutdown_all()
