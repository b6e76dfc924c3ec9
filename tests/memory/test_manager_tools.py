"""Tools: offered where they may be, answered in JSON whatever happens."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hermes.memory.manager import MemoryManager, inject_memory_provider_tools
from tests.memory.providers import Recording
from tests.memory.test_manager import TOOL, started

MEMORY = {"name": "memory", "parameters": {}}


def error_of(result: str) -> str:
    """The error that a tool answered with."""
    said: str = json.loads(result)["error"]
    return said


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("plain text", {"result": "plain text"}),
        ("", {"result": ""}),
        (None, {"result": None}),
        ({"a": 1}, {"a": 1}),
        ([1], [1]),
        (7, {"result": 7}),
        ({"a": object}, {"a": str(object)}),
        ("half \ud83d", {"result": "half \ud83d"}),
    ],
)
def test_every_result_is_json(result: Any, expected: Any) -> None:
    """What a tool returns that is not JSON is wrapped."""
    provider = Recording(tools=[TOOL])
    provider.handle_tool_call = lambda name, args: result  # type: ignore[method-assign, assignment, misc]
    manager = started(provider)
    assert json.loads(manager.handle_tool_call("my_tool", {})) == expected
    manager.shutdown_all()


@pytest.mark.parametrize(
    ("args", "expected"), [(None, {}), ("", {}), ("{}", {}), ('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1})]
)
def test_arguments_are_an_object(args: Any, expected: Any) -> None:
    """Missing arguments are none, JSON text is read."""
    provider = Recording(tools=[TOOL])
    manager = started(provider)
    manager.handle_tool_call("my_tool", args, task_id="t1")
    assert provider.of("tool") == [("my_tool", expected, {"task_id": "t1"})]
    manager.shutdown_all()


@pytest.mark.parametrize("args", [[], [1], 7, True, "not json", "[1]", b"x"])
def test_arguments_of_the_wrong_type(args: Any) -> None:
    """What is no object is an error that the model can read; the provider is not called."""
    provider = Recording(tools=[TOOL])
    manager = started(provider)
    assert "argument" in error_of(manager.handle_tool_call("my_tool", args))
    assert provider.of("tool") == []
    manager.shutdown_all()


def test_errors_are_json() -> None:
    """An unknown tool and a failing one are answered with an error."""
    provider = Recording(tools=[TOOL])

    def fail(name: str, args: dict[str, Any]) -> str:
        raise ValueError("no such note")

    provider.handle_tool_call = fail  # type: ignore[method-assign, assignment]
    manager = started(provider)
    assert "unknown tool" in error_of(manager.handle_tool_call("nope", {}))
    assert "ValueError: no such note" in error_of(manager.handle_tool_call("my_tool", {}))
    manager.shutdown_all()


def test_secrets_and_recall_stay_out_of_a_providers_tools() -> None:
    """Arguments for an outside provider are masked and without fences; the built-in tool gets them as is."""
    outside, builtin = Recording(tools=[TOOL]), Recording("builtin", tools=[MEMORY])
    manager = started(outside, builtin)
    text = "password: hunter22 <memory-context>\nx\n</memory-context>"
    manager.handle_tool_call("my_tool", {"content": text})
    manager.handle_tool_call("memory", {"content": text})
    assert outside.of("tool")[0][1] == {"content": "password: *** "}
    assert builtin.of("tool")[0][1] == {"content": text}
    manager.shutdown_all()


def test_core_names_belong_to_the_agent() -> None:
    """An outside tool called memory or terminal is not offered; the built-in one answers."""
    outside = Recording(tools=[{"name": "memory"}, {"name": "terminal"}, TOOL, TOOL])
    builtin = Recording("builtin", tools=[MEMORY])
    manager = started(outside, builtin)
    assert [schema["name"] for schema in manager.get_all_tool_schemas()] == ["memory", "my_tool"]
    manager.handle_tool_call("memory", {})
    assert len(builtin.of("tool")) == 1
    assert outside.of("tool") == []
    manager.shutdown_all()


@pytest.mark.parametrize(
    ("disabled", "offered"),
    [
        ([], {"memory", "my_tool"}),
        (["memory"], set()),
        (["builtin"], {"my_tool"}),
        (["provider"], {"memory"}),
        (["recording"], {"memory"}),
        (["my_tool"], {"memory"}),
    ],
)
def test_disabled_tools_are_gone_at_listing_and_at_dispatch(disabled: list[str], offered: set[str]) -> None:
    """What is disabled is neither listed nor run, and status shows it."""
    outside, builtin = Recording(tools=[TOOL]), Recording("builtin", tools=[MEMORY])
    manager = started(outside, builtin, disabled_tools=disabled)
    assert manager.get_all_tool_names() == offered
    for name in ("memory", "my_tool"):
        assert manager.has_tool(name) is (name in offered)
        assert ("disabled" in manager.handle_tool_call(name, {})) is (name not in offered)
    off = {name for seat in manager.status().providers for name in seat.tools_off}
    assert off == {"memory", "my_tool"} - offered
    manager.shutdown_all()


def test_schemas_are_copies_and_read_again_after_the_start() -> None:
    """A caller can change what it got; tools that depend on the start are offered after it."""

    class Late(Recording):
        def initialize(self, session_id: str, **kwargs: Any) -> None:
            """Find out what there is."""
            self.tools = [TOOL, {"name": "another"}]

    manager = MemoryManager()
    manager.add_provider(Late(tools=[TOOL]))
    manager.get_all_tool_schemas()[0]["parameters"]["properties"]["x"] = 1
    assert manager.get_all_tool_schemas() == [TOOL]
    manager.initialize_all("s")
    assert manager.get_all_tool_names() == {"my_tool", "another"}
    manager.shutdown_all()


def test_injection_into_an_agent() -> None:
    """Tools are added wrapped, once, and never over a name that the agent has."""
    manager = started(Recording(tools=[TOOL, {"name": "taken"}]))
    agent = SimpleNamespace(
        memory_manager=manager,
        tools=[{"type": "function", "function": {"name": "taken"}}],
        valid_tool_names={"taken"},
        enabled_toolsets=None,
        disabled_toolsets=None,
    )
    assert inject_memory_provider_tools(agent) == 1
    assert inject_memory_provider_tools(agent) == 0
    assert agent.tools[1] == {"type": "function", "function": TOOL}
    assert agent.valid_tool_names == {"taken", "my_tool"}
    agent.disabled_toolsets, agent.tools, agent.valid_tool_names = ["memory"], [], set()
    assert inject_memory_provider_tools(agent) == 0
    assert inject_memory_provider_tools(SimpleNamespace()) == 0
    bare = SimpleNamespace(_memory_manager=manager)
    assert inject_memory_provider_tools(bare) == 2
    manager.shutdown_all()
