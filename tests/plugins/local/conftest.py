"""A provider over a home of its own, and a clock that a test can set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local.provider import LocalMemoryProvider

Open = Callable[..., LocalMemoryProvider]


@pytest.fixture
def open_local(home: Path) -> Iterator[Open]:
    """Open a provider for a session: ``open_local("s2", user_id="u1")``; closed at the end of the test."""
    opened = []

    def open_one(
        session: str = "s1", *, clock: Callable[[], float] | None = None, **given: Any
    ) -> LocalMemoryProvider:
        provider = LocalMemoryProvider(clock=clock) if clock else LocalMemoryProvider()
        provider.initialize(session, **{"hermes_home": str(home), "platform": "cli", **given})
        opened.append(provider)
        return provider

    yield open_one
    for provider in opened:
        provider.shutdown()


@pytest.fixture
def later(open_local: Open) -> Callable[..., LocalMemoryProvider]:
    """Store texts in an earlier session, and open a later one."""

    def store(*said: str, session: str = "earlier", **given: Any) -> LocalMemoryProvider:
        first = open_local(session, **given)
        first.sync_turns(
            {"user_content": text, "turn_time": 1_700_000_000.0 + number} for number, text in enumerate(said)
        )
        return open_local("now", **given)

    return store
