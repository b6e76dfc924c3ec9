"""First pattern of the guide: a provider's whole life in a manager, and its tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def test_the_life_of_a_provider(manager: Callable[..., Any], notes: Any) -> None:
    """Added, started, asked, told of a turn and of the end, shut down: in this order, and each once."""
    mgr = manager()
    mgr.initialize_all(session_id="test-1", platform="cli")
    mgr.sync_all("I like oolong tea", "Noted.")
    mgr.on_session_end([{"role": "user", "content": "I like oolong tea"}])
    assert mgr.flush_pending(10)
    assert "oolong" in mgr.prefetch_all("which oolong?")
    mgr.shutdown_all()
    assert [name for name, _ in notes.calls if name not in ("is_available", "get_tool_schemas")] == [
        "initialize",
        "on_session_end",
        "shutdown",
    ]


def test_a_tool_reaches_its_provider(manager: Callable[..., Any]) -> None:
    """A call is routed by the tool's name, the arguments arrive, and an unknown name is an error in JSON."""
    mgr = manager()
    mgr.initialize_all(session_id="test-1", platform="cli")
    assert mgr.has_tool("notes_add")
    result = json.loads(mgr.handle_tool_call("notes_add", {"action": "add", "content": "test"}))
    assert result == {"kept": "test", "tool": "notes_add"}
    assert "error" in json.loads(mgr.handle_tool_call("nobodys_tool", {}))


def test_a_second_outside_provider_is_refused(manager: Callable[..., Any]) -> None:
    """One outside provider at a time: the second is refused, and the first goes on."""
    from tests.agent.notes import NotesProvider

    class Other(NotesProvider):
        name = "other"

    mgr = manager()
    assert mgr.add_provider(Other()) is False
    assert [provider.name for provider in mgr.providers] == ["notes"]
    mgr.initialize_all(session_id="test-1", platform="cli")
    assert "kept" in json.loads(mgr.handle_tool_call("notes_add", {"content": "x"}))


def test_what_is_kept_is_read_back_by_another_manager(manager: Callable[..., Any]) -> None:
    """Memory lasts: a manager with a new provider finds what the first one kept."""
    from tests.agent.notes import NotesProvider

    first = manager()
    first.initialize_all(session_id="one", platform="cli")
    first.sync_all("the launch is on Thursday", "Good luck!")
    first.shutdown_all()
    second = manager(NotesProvider())
    second.initialize_all(session_id="two", platform="cli")
    assert "Thursday" in second.prefetch_all("when is the launch?")
