"""Hooks of plugins: fired by the manager, limited and contained like every call into a plugin."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from hermes.plugin_host.context import Registered
from hermes.plugin_host.hooks import Here, Hooks, context_of
from tests.memory.providers import Recording


def hooks_of(**callbacks: Callable[..., Any]) -> Hooks:
    """The hooks of one plugin."""
    hooks = Hooks()
    hooks.add("notes", Here(Registered(hooks={name: [callback] for name, callback in callbacks.items()})))
    return hooks


def test_sessions_and_tools_fire_them() -> None:
    """A manager fires the hooks of sessions and tools with what their authors expect, in order."""
    seen: list[tuple[str, dict[str, Any]]] = []

    def keep(name: str) -> Callable[..., None]:
        return lambda **facts: seen.append((name, facts))

    names = ("on_session_start", "on_session_end", "pre_tool_call", "post_tool_call")
    manager = MemoryManager(hooks=hooks_of(**{name: keep(name) for name in names}))
    manager.add_provider(Recording(tools=[{"name": "note_search", "parameters": {"type": "object"}}]))
    try:
        manager.initialize_all("s1", platform="cli")
        assert manager.hooks.drain(10)
        manager.handle_tool_call("note_search", {"query": "ada"})
        manager.commit_session_boundary_async([], new_session_id="s2")
        manager.on_session_end([])
    finally:
        manager.shutdown_all()
    assert [name for name, _ in seen] == [
        "on_session_start",
        "pre_tool_call",
        "post_tool_call",
        "on_session_end",
        "on_session_start",
        "on_session_end",
    ]
    assert seen[0][1] == {"session_id": "s1", "platform": "cli"}
    session = {"session_id": "s1", "platform": "cli"}
    assert seen[1][1] == {"tool_name": "note_search", "args": {"query": "ada"}, **session}
    assert seen[2][1]["result"].startswith("{")
    assert [facts["session_id"] for name, facts in seen if "session" in name] == ["s1", "s1", "s2", "s2"]
    assert not [thread for thread in threading.enumerate() if thread.name == "hermes-notes-hooks"]


def test_what_a_callback_raises_stays_with_it(caplog: pytest.LogCaptureFixture) -> None:
    """A hook that fails is a warning once, and the turn goes on."""

    def failing(**_: Any) -> None:
        raise RuntimeError("broken hook")

    manager = MemoryManager(hooks=hooks_of(on_session_end=failing))
    with caplog.at_level(logging.DEBUG, "hermes.memory"):
        manager.initialize_all("s1")
        manager.on_session_end([])
        manager.on_session_end([])
        assert manager.hooks.drain(10)
    manager.shutdown_all()
    said = [record.levelname for record in caplog.records if "broken hook" in record.getMessage()]
    assert said == ["WARNING", "DEBUG"]


def test_a_stuck_callback_costs_its_limit_once() -> None:
    """A hook that does not return is given up at the limit; the next call of that plugin is not even made."""
    release, made = threading.Event(), []

    def stuck(**_: Any) -> None:
        made.append(1)
        release.wait(30)

    hooks = hooks_of(pre_llm_call=stuck)
    hooks.add("other", Here(Registered(hooks={"pre_llm_call": [lambda **_: "from the other"]})))
    try:
        assert hooks.fire("pre_llm_call", {}, within=0.05) == ["from the other"]
        assert hooks.fire("pre_llm_call", {}, within=0.05) == ["from the other"]
        assert made == [1]
    finally:
        release.set()
        hooks.close()


def test_secrets_do_not_reach_hooks() -> None:
    """What a hook is given is masked like everything that an outside provider gets, and is a copy."""
    seen: list[str] = []
    manager = MemoryManager(hooks=hooks_of(pre_tool_call=lambda args: seen.append(args.pop("text"))))
    given = {"text": "the token is ghp_0123456789abcdefghijABCDEFGHIJ012345"}
    try:
        manager.handle_tool_call("nothing", given)
    finally:
        manager.shutdown_all()
    assert "ghp_" in given["text"]
    assert seen
    assert "ghp_" not in seen[0]


def test_nothing_is_prepared_for_hooks_that_nobody_has() -> None:
    """Without a callback, firing costs nothing and answers nothing."""
    manager = MemoryManager(limits=Limits())
    assert manager.fire("pre_llm_call", user_message=object()) == []
    manager.shutdown_all()


def test_only_known_hooks_are_fired() -> None:
    """A hook that this host does not have is a mistake of the host, and said to be one."""
    with pytest.raises(ValueError, match="on_every_full_moon"):
        hooks_of(on_every_full_moon=print).fire("on_every_full_moon", {}, within=1)


def test_loading_a_plugin_again_replaces_its_hooks() -> None:
    """A plugin that was loaded twice is not told everything twice."""
    hooks = hooks_of(pre_llm_call=lambda: "old")
    hooks.fire("pre_llm_call", {}, within=1)
    hooks.add("notes", Here(Registered(hooks={"pre_llm_call": [lambda: "new"]})))
    assert hooks.fire("pre_llm_call", {}, within=1) == ["new"]
    hooks.close()
    assert not hooks.wanted("pre_llm_call")


def test_what_the_model_is_told() -> None:
    """Texts, and texts under ``context``, make what goes to the model; anything else is left out."""
    answers = ["one ", {"context": "two"}, {"context": None}, {"action": "block"}, 3, "", ["x"]]
    assert context_of(answers) == "one\n\ntwo"


def test_a_stuck_session_hook_does_not_hold_a_boundary() -> None:
    """Hooks of sessions are called in the background, in order: the end of a session returns at once."""
    release, seen = threading.Event(), []

    def stuck(**facts: Any) -> None:
        assert release.wait(30)
        seen.append(facts["session_id"])

    manager = MemoryManager(hooks=hooks_of(on_session_end=stuck))
    manager.initialize_all("s1")
    manager.on_session_end([])
    manager.commit_session_boundary_async([], new_session_id="s2")
    assert seen == []
    release.set()
    assert manager.hooks.drain(10)
    assert seen == ["s1", "s1"]
    manager.shutdown_all()
