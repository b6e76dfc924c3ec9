"""Fourth pattern of the guide: in which order things happen when an agent starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_tools_are_known_before_the_start(manager: Callable[..., Any], notes: Any) -> None:
    """A provider's tools are known when it is added; it starts when the session does, and once."""
    mgr = manager()
    assert mgr.has_tool("notes_add")
    assert "initialize" not in dict(notes.calls)
    mgr.initialize_all(session_id="s", platform="cli")
    mgr.prefetch_all("anything at all")
    assert [name for name, _ in notes.calls if name == "initialize"] == ["initialize"]


def test_the_built_in_memory_comes_first(manager: Callable[..., Any], notes: Any) -> None:
    """A provider called ``builtin`` that is added last is asked first all the same."""
    from tests.agent.notes import NotesProvider

    class BuiltIn(NotesProvider):
        name = "builtin"

        def get_tool_schemas(self) -> list[dict[str, Any]]:
            return []

    mgr = manager()
    assert mgr.add_provider(BuiltIn())
    assert [provider.name for provider in mgr.providers] == ["builtin", "notes"]


def test_one_that_fails_to_start_stops_nothing(
    manager: Callable[..., Any], notes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that raises when it starts costs the agent nothing: turns go on, and are kept for it."""

    def fail(session_id: str, **kwargs: Any) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(notes, "initialize", fail)
    mgr = manager()
    mgr.initialize_all(session_id="s", platform="cli")
    assert mgr.prefetch_all("anything that matters") == ""
    mgr.sync_all("hello there", "hi")
    assert "no route" in repr(mgr.status())
