"""Third pattern of the guide: who speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_who_speaks_reaches_the_provider(manager: Callable[..., Any], notes: Any) -> None:
    """The identity that a host knows is handed on as it is, beside what every provider is given."""
    mgr = manager(profile="work")
    mgr.initialize_all(session_id="s", platform="telegram", user_id="u-7", user_id_alt="alice", chat_id="c-1")
    given = notes.started
    assert (given["user_id"], given["user_id_alt"], given["chat_id"]) == ("u-7", "alice", "c-1")
    assert (given["platform"], given["agent_identity"], given["agent_context"]) == (
        "telegram",
        "work",
        "primary",
    )
    assert given["hermes_home"] == str(mgr.home)


def test_without_a_user_nothing_is_invented(manager: Callable[..., Any], notes: Any) -> None:
    """A command line knows no user: no identity is made up."""
    mgr = manager()
    mgr.initialize_all(session_id="s", platform="cli")
    assert not notes.started.get("user_id")


def test_two_users_never_see_each_other(manager: Callable[..., Any]) -> None:
    """What one user said is not recalled for another."""
    from tests.agent.notes import NotesProvider

    managers = {}
    for user in ("alice", "bob"):
        managers[user] = manager(NotesProvider())
        managers[user].initialize_all(session_id=f"of-{user}", platform="telegram", user_id=user)
    managers["alice"].sync_all("my bicycle is green", "Nice.")
    assert managers["alice"].flush_pending(10)
    assert "green" in managers["alice"].prefetch_all("what colour is my bicycle?")
    assert managers["bob"].prefetch_all("what colour is my bicycle?") == ""
