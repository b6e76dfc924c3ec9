"""Whose memory a session sees: people, chats and threads are kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hermes.plugins.memory.local.provider import LocalMemoryProvider

Open = Callable[..., LocalMemoryProvider]


def texts(provider: LocalMemoryProvider) -> list[str]:
    """Everything stored, in order."""
    return [record["text"] for record in provider.export_records()]


def call(provider: LocalMemoryProvider, tool: str, **args: Any) -> Any:
    """What a tool answers."""
    return json.loads(provider.handle_tool_call(tool, args))


def test_users_of_a_gateway_are_kept_apart(open_local: Open) -> None:
    """No search, list, recall or forgetting of one reaches the other's, nor the owner's."""
    people = {
        "u1": open_local("a", platform="telegram", user_id="u1"),
        "u2": open_local("b", platform="telegram", user_id="u2"),
        "other platform": open_local("c", platform="discord", user_id="u1"),
        "owner": open_local("d"),
    }
    for who, provider in people.items():
        provider.sync_turn(f"the locker code of {who} is 4471", "")
    for who, provider in people.items():
        again = LocalMemoryProvider()
        again.initialize(
            "later",
            hermes_home=str(provider._path.parent.parent if provider._path else ""),
            platform={"u1": "telegram", "u2": "telegram", "other platform": "discord"}.get(who, "cli"),
            **({"user_id": who.replace("other platform", "u1")} if who != "owner" else {}),
        )
        assert again.prefetch("locker code?").count("4471") == 1
        assert f"locker code of {who} " in again.prefetch("locker code?")
        assert len(call(again, "local_search", query="locker code")["results"]) == 1
        assert len(call(again, "local_list")["results"]) == 1
        again.shutdown()
    stolen = [r["id"] for r in people["owner"].export_records()]
    assert call(people["u1"], "local_forget", ids=stolen)["forgotten"] == 1
    assert len(texts(people["owner"])) == 3


def test_an_empty_scope_is_nobodys(open_local: Open) -> None:
    """On a shared platform without any id a session keeps to itself; it never means everybody."""
    open_local("a", platform="telegram", user_id="u1").sync_turn("the locker code is 4471", "")
    open_local("b").sync_turn("the owner's locker code is 5582", "")
    for given in ({}, {"user_id": ""}, {"user_id": None}, {"user_id": "  "}):
        lost = open_local("c", platform="telegram", **given)
        assert lost.prefetch("locker code?") == ""
        assert call(lost, "local_list") == {"results": []}


def test_chats_and_threads_are_kept_apart(open_local: Open) -> None:
    """Without a user id, a chat and each of its threads have a memory of their own."""
    scopes = [
        {"chat_id": "c1"},
        {"chat_id": "c2"},
        {"chat_id": "c1", "thread_id": "t1"},
        {"gateway_session_key": "g"},
        {"chat_id": "c1:t1"},
    ]
    signatures = {json.dumps(open_local("s", platform="slack", **g).identity_signature()) for g in scopes}
    assert len(signatures) == len(scopes)


def test_the_owners_commands_see_everything(open_local: Open) -> None:
    """Export and forgetting from the command line reach every person of the profile; a user's own do not."""
    open_local("a", platform="telegram", user_id="u1").sync_turn("first", "")
    user = open_local("b", platform="telegram", user_id="u2")
    user.sync_turn("second", "")
    owner = open_local("c")
    owner.sync_turn("third", "")
    assert {r["text"]: r.get("scope") for r in owner.export_records()} == {
        "first": "user:telegram:u1",
        "second": "user:telegram:u2",
        "third": None,
    }
    assert texts(user) == ["second"]
    assert user.forget_records() == 1
    assert owner.forget_records(session_id="a") == 1
    assert texts(owner) == ["third"]
