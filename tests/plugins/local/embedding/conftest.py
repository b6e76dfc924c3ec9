"""Providers that find by meaning, over an endpoint on this machine or the model that can be installed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local.provider import LocalMemoryProvider
from tests.plugins.local.embedding import packages
from tests.plugins.local.embedding.server import Endpoint, endpoint

Open = Callable[..., LocalMemoryProvider]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test may wait until the packages are installed."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))


@pytest.fixture(autouse=True)
def _importable() -> None:
    """What the tests need is importable, or they are skipped."""
    packages.importable()


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process stored or forgot is noticed soon."""
    monkeypatch.setattr("hermes.plugins.memory.local.embedding.background.IDLE_SECONDS", 0.05)


@pytest.fixture
def server() -> Iterator[Endpoint]:
    """An embeddings endpoint."""
    with endpoint() as running:
        yield running


@pytest.fixture
def open_local(home: Path) -> Iterator[Open]:
    """Open a provider with settings: ``open_local(endpoint=url, model="m")``; closed at the end."""
    opened: list[LocalMemoryProvider] = []

    def open_one(
        session: str = "now", given: dict[str, Any] | None = None, **local: Any
    ) -> LocalMemoryProvider:
        secrets = {"EMBEDDING_KEY": "sk-embed"}
        provider = LocalMemoryProvider(config=lambda: {"local": local}, secret=secrets.get)
        provider.initialize(session, **{"hermes_home": str(home), "platform": "cli", **(given or {})})
        opened.append(provider)
        return provider

    yield open_one
    for provider in opened:
        provider.shutdown()


@pytest.fixture
def by_meaning(open_local: Open, server: Endpoint) -> Open:
    """Open a provider that has its vectors from the endpoint."""

    def open_one(session: str = "now", **local: Any) -> LocalMemoryProvider:
        return open_local(session, **{"endpoint": server.url, "model": "m", **local})

    return open_one


def tell(provider: LocalMemoryProvider, *said: str, session: str = "earlier") -> None:
    """Store texts in a session."""
    provider.sync_turns(
        {
            "user_content": text,
            "assistant_content": "",
            "session_id": session,
            "turn_time": 1_700_000_000.0 + i,
        }
        for i, text in enumerate(said)
    )


def settled(provider: LocalMemoryProvider, seconds: float = 30.0) -> dict[str, Any]:
    """The status once everything is embedded."""
    return until(provider, lambda status: not status.get("to_embed"), seconds)


def until(
    provider: LocalMemoryProvider, reached: Callable[[dict[str, Any]], bool], seconds: float = 30.0
) -> dict[str, Any]:
    """The status once it has *reached* something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status = provider.get_status_config({})
        if reached(status):
            return status
        time.sleep(0.01)
    raise AssertionError(f"not reached: {status}")


def found(provider: LocalMemoryProvider, asked: str, limit: int = 5) -> list[str]:
    """The texts that a search gives."""
    return [record["text"] for record in provider.search_records(asked, limit=limit) or []]
