"""What register(ctx) may call, and what is made of it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hermes.errors import ProviderUnavailable
from hermes.plugin_host.context import Llm, Registered, RegistrationContext
from hermes.plugin_host.host import Host


class Asked:
    """A host that knows one profile and one model."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def load_config(self) -> dict[str, Any]:
        """Settings."""
        return {"memory": {"provider": "notes"}}

    def profile_name(self) -> str:
        """A name."""
        return "work"

    def call_llm(self, **request: Any) -> dict[str, Any]:
        """Answers."""
        self.requests.append(request)
        return {"choices": [{"message": {"content": "four"}}], "model": "m", "usage": {"total_tokens": 3}}


def context(host: Any = None, **manifest: Any) -> RegistrationContext:
    """A context for a plugin called notes."""
    return RegistrationContext("notes", cast("Host | None", host), manifest)


def test_one_memory_provider() -> None:
    """A second provider is refused and the first stays; the same one twice, or a class, is fine."""
    ctx = context()
    one = SimpleNamespace(name="one")
    ctx.register_memory_provider(one)
    ctx.register_memory_provider(one)
    with pytest.raises(ProviderUnavailable, match="two memory providers"):
        ctx.register_memory_provider(SimpleNamespace(name="two"))
    assert ctx.registered.memory_provider is one


def test_everything_that_plugins_register() -> None:
    """Each call that published plugins make is taken, in the forms they make it, and is in the report or in play."""
    ctx = context()
    ctx.register_hook("pre_llm_call", print)
    ctx.register_hook("pre_gateway_dispatch", print)
    ctx.register_tool("a", "set", {"name": "a"}, print, check_fn=print)
    ctx.register_tool(name="b", toolset="set", schema={"name": "b"}, handler=print, emoji="x")
    ctx.register_tool(schema={"name": "c"}, handler=print)
    ctx.register_command("recall", print, "Looks it up.", args_hint="WORDS")
    ctx.register_slash_command("/forget", handler=print, description="Forgets.")
    ctx.register_cli_command(name="notes", help="h", setup_fn=print, handler_fn=print, description="d")
    ctx.register_middleware(print)
    ctx.register_platform(name="matrix", adapter=object())
    ctx.register_skill("skill", "/a/path", description="d")
    ctx.register_system_prompt_section("section", lambda: "text")
    ctx.register_redaction_patterns([r"\d+"])
    ctx.register_auxiliary_task()
    ctx.register_context_engine(SimpleNamespace(name="engine"))
    registered = ctx.registered
    assert registered.context_engine.name == "engine"
    assert set(registered.tools) == {"a", "b", "c"}
    assert registered.cli_commands["notes"]["description"] == "d"
    assert registered.unused() == [
        "hook pre_gateway_dispatch",
        "tool a",
        "tool b",
        "tool c",
        "command /forget",
        "command /recall",
        "register_middleware: print",
        "register_platform: matrix",
        "register_skill: skill",
        "register_system_prompt_section: section",
        "register_redaction_patterns",
        "register_auxiliary_task",
    ]


def test_what_another_host_has_and_this_one_has_not() -> None:
    """A guarded look at an unknown attribute finds nothing: it is not accepted as if it worked."""
    assert not hasattr(context(), "kanban")
    assert getattr(context(), "gateway", None) is None


def test_what_a_plugin_may_ask() -> None:
    """Settings, the profile's name, the manifest and the model come from the host."""
    ctx = context(Asked(), version="2", requires_env=["KEY"])
    assert ctx.config == {"memory": {"provider": "notes"}}
    assert ctx.profile_name == "work"
    assert (ctx.manifest.name, ctx.manifest.key, ctx.manifest.version) == ("notes", "notes", "2")
    assert ctx.manifest.requires_env == ["KEY"]
    assert ctx.manifest.author == ""
    assert ctx.llm is not None
    answer = ctx.llm.complete("two and two?", max_tokens=5)
    assert (answer.text, answer.model, answer.usage) == ("four", "m", {"total_tokens": 3})
    assert ctx.llm([{"role": "user", "content": "again?"}]) == "four"


def test_without_a_host() -> None:
    """Nobody to ask: empty answers, not errors."""
    ctx = context()
    assert (ctx.config, ctx.profile_name, ctx.llm) == ({}, "default", None)


def test_the_model_is_asked_as_the_interface_says() -> None:
    """One text becomes a message of the user; options that are None are left out."""
    host = Asked()
    Llm(host.call_llm).complete("hi", temperature=0, model=None)
    assert host.requests == [{"messages": [{"role": "user", "content": "hi"}], "temperature": 0}]


def test_own_tools_can_be_dispatched() -> None:
    """dispatch_tool runs a tool that the plugin registered itself; another one is an error as JSON."""
    ctx = context()
    ctx.register_tool("add", schema={"name": "add"}, handler=lambda args: {"sum": args["a"] + 1})
    assert json.loads(ctx.dispatch_tool("add", {"a": 1})) == {"sum": 2}
    assert "no tool 'terminal'" in json.loads(ctx.dispatch_tool("terminal", {}))["error"]
    assert ctx.inject_message("hello") is False
    assert ctx.registered.other == [("inject_message", "hello")]


def test_the_hooks_of_the_plugin_manager_are_the_same() -> None:
    """A plugin that appends to the private table of hooks has registered a hook."""
    ctx = context()
    ctx._manager._hooks.setdefault("post_llm_call", []).append(print)
    assert ctx.registered.hooks == {"post_llm_call": [print]}


def test_callbacks_are_given_what_they_accept() -> None:
    """Each callback gets the facts that it names, a coroutine is run, and one that raises does not stop the next."""

    async def later(session_id: str) -> str:
        return f"later {session_id}"

    def failing() -> None:
        raise RuntimeError("no")

    registered = Registered(
        hooks={"pre_llm_call": [lambda **all_of_it: sorted(all_of_it), failing, later, lambda model: None]}
    )
    answers, errors = registered.fire("pre_llm_call", {"session_id": "s", "model": "m"})
    assert answers == [["model", "session_id"], "later s"]
    assert errors == ["RuntimeError: no"]
