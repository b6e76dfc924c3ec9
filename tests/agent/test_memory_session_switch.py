"""Second pattern of the guide: the conversation goes on in another session."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def lines(notes: Any) -> list[dict[str, Any]]:
    """What the provider has kept."""
    return [json.loads(line) for line in notes.file.read_text().splitlines()]


def test_a_turn_belongs_to_the_session_it_was_said_in(manager: Callable[..., Any], notes: Any) -> None:
    """What was said before a switch keeps its session, however late it is delivered."""
    mgr = manager()
    mgr.initialize_all(session_id="old", platform="cli")
    mgr.sync_all("before", "yes")
    mgr.on_session_switch("new", parent_session_id="old", reset=True, reason="new_session")
    mgr.sync_all("after", "yes")
    assert mgr.flush_pending(10)
    assert [(line["user"], line["session"]) for line in lines(notes)] == [("before", "old"), ("after", "new")]
    assert notes.session_id == "new"


def test_the_facts_of_a_switch_arrive(manager: Callable[..., Any], notes: Any) -> None:
    """Parent, reset and reason arrive; ``rewound`` is said only where a turn was taken back."""
    mgr = manager()
    mgr.initialize_all(session_id="one", platform="cli")
    mgr.on_session_switch("two", parent_session_id="one", reset=True, reason="new_session")
    mgr.on_session_switch("two", parent_session_id="one", rewound=True, reason="undo")
    assert mgr.flush_pending(10)
    (first, second) = [given for name, given in notes.calls if name == "on_session_switch"]
    assert first == ("two", {"parent_session_id": "one", "reset": True, "reason": "new_session"})
    assert second[1]["rewound"] is True


def test_the_end_of_a_session_comes_before_the_next_one(manager: Callable[..., Any], notes: Any) -> None:
    """A session that is ended and left in one step is ended first."""
    mgr = manager()
    mgr.initialize_all(session_id="one", platform="cli")
    mgr.sync_all("hello", "hi")
    transcript = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    mgr.commit_session_boundary_async(transcript, new_session_id="two", parent_session_id="one")
    assert mgr.flush_pending(10)
    told = [name for name, _ in notes.calls if name.startswith("on_session")]
    assert told == ["on_session_end", "on_session_switch"]
