"""Whose memory a session sees: people, chats and threads are kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.memory.journal import Journal, Kind
from hermes.memory.manager import MemoryManager
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.records import OWNER
from hermes.plugins.memory.local.scopes import project_of, scope_of

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


# -- who is meant -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", ["cli", "CLI ", "tui", "mcp", "cron", "subagent", "", None])
def test_where_the_owner_alone_can_speak(platform: str | None) -> None:
    """On the person's own machine no id is needed; an application that names no platform is taken for that."""
    assert scope_of("s", {"platform": platform}) == OWNER


@pytest.mark.parametrize("platform", ["telegram", "api_server", "a-platform-of-tomorrow", "web", "unknown"])
@pytest.mark.parametrize(
    "given", [{}, {"user_id": ""}, {"user_id": None, "chat_id": " "}, {"thread_id": "", "user_id_alt": None}]
)
def test_a_platform_without_ids_is_nobodys(platform: str, given: dict[str, Any]) -> None:
    """Whatever platform it is, known or not: the session keeps to itself, and two sessions share nothing."""
    one, two = (scope_of(session, {"platform": platform, **given}) for session in ("s1", "s2"))
    assert one != two
    assert OWNER not in (one, two)


def test_no_file_is_named_after_a_person(open_local: Open, home: Path) -> None:
    """Ids are in the store, not in the names of files."""
    open_local("chat-7", platform="telegram", user_id="u4711").sync_turn("hello there", "")
    assert not [path for path in home.rglob("*") if "4711" in path.name or "chat-7" in path.name]


def test_every_id_is_a_scope_of_its_own() -> None:
    """Users, chats, threads and platforms in every combination, and ids that look like a join of others."""
    given = [
        {"platform": platform, key: value}
        for platform in ("telegram", "slack")
        for key in ("user_id", "chat_id", "thread_id", "gateway_session_key")
        for value in ("1", "2", "1:2", "1%3A2", "owner", 3)
    ]
    given += [{"platform": "slack", "chat_id": "1", "thread_id": thread} for thread in ("1", "2", "2:")]
    scopes = [scope_of("s", one) for one in given]
    doubled = len(given) - len(set(scopes))
    assert doubled == 2 * 6  # a chat is the same by its id and by the gateway's key
    assert OWNER not in scopes


def test_a_user_is_the_same_in_every_chat() -> None:
    """The user id counts before the chat, and the alternative id where there is no other."""
    by_id = {scope_of("s", {"platform": "slack", "user_id": "u", "chat_id": chat}) for chat in ("a", "b")}
    by_other = {scope_of("s", {"platform": "slack", "user_id": "", "user_id_alt": "u", "chat_id": "c"})}
    assert by_id == by_other == {"user:slack:u"}


def test_a_lost_session_shares_nothing_pinned(open_local: Open) -> None:
    """Not even what is always shown to the owner reaches a platform without ids."""
    call(open_local("own"), "local_remember", text="The alarm code is 4471", pinned=True)
    lost = open_local("x", platform="somewhere")
    assert lost.prefetch("what is the alarm code?") == ""
    assert call(lost, "local_list", facts=True) == {"results": []}
    assert list(lost.export_records()) == []
    assert lost.forget_records() == 0


# -- projects -----------------------------------------------------------------------------------------------


@pytest.fixture
def in_project(home: Path) -> Iterator[Callable[..., LocalMemoryProvider]]:
    """Open a provider with ``local.scope: project`` in a folder."""
    opened: list[LocalMemoryProvider] = []

    def open_one(folder: Path, session: str = "s", **given: Any) -> LocalMemoryProvider:
        provider = LocalMemoryProvider(config=lambda: {"local": {"scope": "project"}})
        provider.initialize(session, hermes_home=str(home), platform="cli", cwd=str(folder), **given)
        opened.append(provider)
        return provider

    yield open_one
    for provider in opened:
        provider.shutdown()


@pytest.fixture
def repositories(tmp_path: Path) -> tuple[Path, Path]:
    """Two repositories, the first with a folder in it."""
    for name in ("a", "b"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "a" / "src" / "deep").mkdir(parents=True)
    return tmp_path / "a", tmp_path / "b"


def test_a_project_sees_its_own_and_the_owners(
    open_local: Open,
    in_project: Callable[..., LocalMemoryProvider],
    repositories: tuple[Path, Path],
) -> None:
    """In repository A: what was said there and what belongs to the profile; nothing of B."""
    a, b = repositories
    open_local("own").sync_turn("deploy days are fridays, zebra rule", "")
    in_project(a / "src", "in a").sync_turn("deploy of project a uses zebra one", "")
    in_project(b, "in b").sync_turn("deploy of project b uses zebra two", "")
    block = in_project(a / "src" / "deep", "later").prefetch("how do we deploy, zebra?")
    assert "zebra rule" in block
    assert "zebra one" in block
    assert "zebra two" not in block
    assert "zebra one" not in open_local("later").prefetch("how do we deploy, zebra?")


def test_facts_of_a_project(
    open_local: Open,
    in_project: Callable[..., LocalMemoryProvider],
    repositories: tuple[Path, Path],
) -> None:
    """Remembered there, shown there; the owner's can be changed from there, those of another not."""
    a, b = repositories
    own = call(open_local("own"), "local_remember", text="Tabs are four wide", pinned=True)["remembered"][
        "id"
    ]
    of_a = call(in_project(a), "local_remember", text="Tests run with make", pinned=True)["remembered"]["id"]
    assert in_project(a).prefetch("anything at all?").count("remembered") == 2
    assert in_project(b).prefetch("anything at all?").count("remembered") == 1
    assert "no fact" in call(in_project(b), "local_update", id=of_a, text="x y")["error"]
    assert call(in_project(b), "local_update", id=own, text="Tabs are two wide")["updated"]["pinned"]
    assert "two wide" in open_local("own").prefetch("anything at all?")
    assert call(in_project(a), "local_forget", ids=[own, of_a])["forgotten"] == 2
    assert "two wide" in in_project(a).prefetch("anything at all?")  # what was forgotten was its history


def test_what_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repositories: tuple[Path, Path]
) -> None:
    """A repository counts from anywhere in it, a plain folder for itself; a home and the root are the owner's."""
    a, b = repositories
    assert (
        project_of({"cwd": str(a)})
        == project_of({"cwd": str(a / "src" / "deep")})
        != project_of({"cwd": str(b)})
    )
    plain = tmp_path / "plain"
    plain.mkdir()
    assert project_of({"cwd": str(plain)}) not in (OWNER, project_of({"cwd": str(a)}))
    monkeypatch.setenv("HOME", str(plain))
    assert project_of({"cwd": str(plain)}) == OWNER
    assert project_of({"cwd": "/"}) == OWNER
    (tmp_path / "link").symlink_to(a)
    assert project_of({"cwd": str(tmp_path / "link")}) == project_of({"cwd": str(a)})
    monkeypatch.chdir(a / "src")
    assert project_of({}) == project_of({"cwd": str(a)})


def test_people_of_a_gateway_have_no_projects(
    in_project: Callable[..., LocalMemoryProvider], repositories: tuple[Path, Path]
) -> None:
    """Where the host works is nothing to its users: they keep their own memory."""
    a, b = repositories
    in_project(a, "x", user_id="u1").sync_turn("the locker code is 4471", "")
    assert "4471" in in_project(b, "y", user_id="u1").prefetch("locker code?")
    assert in_project(a, "z").prefetch("locker code?") == ""


# -- what is delivered for somebody else --------------------------------------------------------------------


def wrongly_kept(home: Path) -> list[str]:
    """Turns in the scope of another than their first word says."""
    owner = LocalMemoryProvider()
    owner.initialize("own", hermes_home=str(home), platform="cli")
    records = [r for r in owner.export_records() if r["role"] in ("user", "note")]
    owner.shutdown()
    assert records
    return [r["text"] for r in records if r.get("scope", "").split(":")[-1] != r["text"].split()[0]]


def manager_of(home: Path, user: str, journal: Journal) -> MemoryManager:
    """A manager of the gateway's session with *user*."""
    manager = MemoryManager(home=home, journal=journal)
    manager.add_provider(LocalMemoryProvider())
    manager.initialize_all(f"s-{user}", platform="telegram", user_id=user)
    return manager


def test_sessions_that_share_a_journal(home: Path) -> None:
    """Whoever's manager hands a turn over, it goes to the person who said it."""
    home.mkdir()
    managers = {user: manager_of(home, user, Journal(home / "journal.db")) for user in ("u1", "u2")}
    for number in range(15):
        for user, manager in managers.items():
            manager.sync_all(f"{user} has secret {number}", "noted")
    for user, manager in managers.items():
        manager.on_memory_write("add", "user", f"{user} likes tea")
    for manager in managers.values():
        manager.flush_pending(20)
    for manager in managers.values():
        manager.shutdown_all()
    assert wrongly_kept(home) == []


def test_what_a_crash_left_goes_to_its_own(home: Path) -> None:
    """Turns that were not delivered are, by another person's session, and are not theirs to see."""
    home.mkdir()
    journal = Journal(home / "journal.db")
    first = manager_of(home, "u1", journal)
    left = first._outgoing._handover.entries(Kind.TURN, "s-u1", {"user": "u1 has secret 1", "assistant": ""})
    first.shutdown_all()
    journal.append(left)
    second = manager_of(home, "u2", journal)
    assert second.flush_pending(20)
    assert "secret" not in second.prefetch_all("what secret is there?")
    second.shutdown_all()
    journal.close()
    assert wrongly_kept(home) == []


def test_another_sessions_switch_moves_nobody(open_local: Open) -> None:
    """A switch that belongs to another session leaves this one where it is."""
    provider = open_local("s1", platform="telegram", user_id="u1")
    provider.on_session_switch(
        "s9", identity={"session_id": "other", "user_id": "u1", "platform": "telegram"}
    )
    provider.sync_turn("still in the first", "")
    provider.on_session_switch("s2", identity={"session_id": "s1", "user_id": "u1", "platform": "telegram"})
    provider.sync_turn("now in the second", "")
    assert [record["session_id"] for record in provider.export_records()] == ["s1", "s2"]
