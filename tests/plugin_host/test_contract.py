"""The manager cannot tell where a provider runs: the same behaviours, here and in a worker process."""

from __future__ import annotations

import json
import os
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import ProviderUnavailable
from hermes.memory.journal import Journal
from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from hermes.memory.seat import State
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.loading import load
from hermes.plugin_host.worker.opening import environment
from hermes.plugin_host.worker.provider import WorkerProvider
from hermes.plugin_host.worker.restarting import Worker
from tests.plugin_host.worker.making import Answering, eventually, write_plugin

ENOUGH = Limits(prefetch=20, tool_call=20, hook=20, initialize=20, session_end=20, shutdown=20)
HELPERS = textwrap.dedent("""
    def told(self, *what):
        with open(os.path.join(self.kwargs["hermes_home"], "seen"), "a") as seen:
            seen.write(json.dumps(what) + "\\n")

    def wait_for(self, name):
        told(self, "waits")
        while not os.path.exists(os.path.join(self.kwargs["hermes_home"], name)):
            time.sleep(0.005)
""")

Managed = Callable[..., MemoryManager]


@pytest.fixture(params=["here", "worker"])
def managed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Managed]:
    """Gives a manager with the provider ``Demo`` of some code, run here or in a worker; ended after the test."""
    home = tmp_path / "home"
    home.mkdir()

    with ExitStack() as ending:

        def make(body: str, *, limits: Limits = ENOUGH, begin: bool = True, **options: Any) -> MemoryManager:
            spec = write_plugin(tmp_path, HELPERS + textwrap.dedent(body))
            if request.param == "here":
                context = RegistrationContext("demo")
                load(spec, context)
                provider = context.registered.memory_provider
            else:
                log = home / "logs" / "plugins" / "demo.log"
                variables = environment("default", home, {}, os.environ)
                host = Answering(home)
                worker = Worker(spec, {}, environment=variables, log=log, host=host, limits=limits)
                provider = WorkerProvider(worker)
                ending.callback(provider.close)
            journal = Journal(home / "journal.db")
            ending.callback(journal.close)
            manager = MemoryManager(home=home, profile="default", limits=limits, journal=journal)
            ending.callback(manager.shutdown_all)
            assert manager.add_provider(provider)
            if begin:
                manager.initialize_all("s1", platform="cli", **options)
            return manager

        yield make


def seen(tmp_path: Path) -> list[Any]:
    """What the provider says that it was told."""
    file = tmp_path / "home" / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


RECORDING = """
    class Demo(Base):
        def initialize(self, session_id, **kwargs):
            super().initialize(session_id, **kwargs)
            told(self, "initialize", session_id, sorted(kwargs), kwargs["agent_identity"], kwargs["platform"])

        def get_tool_schemas(self):
            return [{"name": "demo_tool", "description": "", "parameters": {"type": "object", "properties": {}}}]

        def system_prompt_block(self): return "Demo is here."
        def on_turn_start(self, turn_number, message, **kwargs): told(self, "turn", turn_number, message, kwargs)
        def prefetch(self, query, *, session_id=""): told(self, "prefetch", query, session_id); return f"of {query}"
        def queue_prefetch(self, query, *, session_id=""): told(self, "queue", query, session_id)
        def recall_status(self): return RecallStatus("Demo", 2)
        def handle_tool_call(self, tool_name, args, **kwargs):
            told(self, "tool", tool_name, args, kwargs)
            return json.dumps({"done": args})
        def sync_turn(self, user_content, assistant_content, *, session_id="", messages=None, turn_author=None):
            told(self, "sync", user_content, assistant_content, session_id, messages, turn_author)
        def on_memory_write(self, action, target, content, metadata=None):
            told(self, "write", action, target, content, sorted(metadata))
        def on_delegation(self, task, result, *, child_session_id="", **kwargs):
            told(self, "delegation", task, result, child_session_id, sorted(kwargs))
        def on_pre_compress(self, messages, *, require_checkpoint=False):
            told(self, "compress", messages, require_checkpoint)
            return "keep this"
        def on_session_switch(self, new_session_id, *, parent_session_id="", reset=False, rewound=False, **kwargs):
            told(self, "switch", new_session_id, parent_session_id, reset, rewound, kwargs)
        def on_session_end(self, messages): told(self, "end", messages)
        def shutdown(self): told(self, "shutdown")
"""


def test_a_whole_life(managed: Managed, tmp_path: Path) -> None:
    """Every member is called with the same arguments in the same order, and its answers are used alike."""
    manager = managed(RECORDING, user_id="u1")
    assert manager.build_system_prompt() == "Demo is here."
    manager.on_turn_start(1, "hello", user_id="u1")
    assert manager.prefetch_all("tea?") == "of tea?"
    assert manager.describe_recall() == "✦ Demo: 2 memories"
    assert manager.get_all_tool_names() == {"demo_tool"}
    assert json.loads(manager.handle_tool_call("demo_tool", {"n": 1}, call_id="c")) == {"done": {"n": 1}}
    messages = [{"role": "user", "content": "hello"}]
    manager.sync_all("hello", "hi", messages=messages, turn_author="ada")
    manager.on_memory_write("add", "user", "likes tea", {"tool_name": "memory"})
    manager.on_delegation("task", "result", child_session_id="c1")
    assert manager.flush_pending(20)
    assert manager.on_pre_compress(messages) == "keep this"
    manager.on_session_switch("s2", parent_session_id="s1", reason="branch")
    assert manager.flush_pending(20)
    manager.on_session_end(messages)
    assert manager.flush_pending(20)
    report = manager.shutdown_all()
    assert (report.clean, report.failed, report.stuck) == (True, {}, ())
    kwargs = ["agent_context", "agent_identity", "hermes_home", "platform", "user_id"]
    facts = ["execution_context", "idempotency_key", "platform", "session_id", "tool_name"]
    assert seen(tmp_path) == [
        ["initialize", "s1", kwargs, "default", "cli"],
        ["turn", 1, "hello", {"user_id": "u1", "session_id": "s1"}],
        ["prefetch", "tea?", "s1"],
        ["tool", "demo_tool", {"n": 1}, {"call_id": "c"}],
        ["sync", "hello", "hi", "s1", messages, "ada"],
        ["write", "add", "user", "likes tea", facts],
        ["delegation", "task", "result", "c1", []],
        ["compress", messages, False],
        ["switch", "s2", "s1", False, False, {"reason": "branch"}],
        ["end", messages],
        ["shutdown"],
    ]


def test_status_has_the_same_figures(managed: Managed) -> None:
    """State, delivery, tools and the count of calls by member are those of any provider."""
    manager = managed(RECORDING)
    for _ in range(3):
        manager.prefetch_all("tea?")
    status = manager.status().providers[0]
    assert (status.name, status.state, status.delivery, status.tools) == (
        "demo",
        State.READY,
        "stored",
        ("demo_tool",),
    )
    assert (status.hooks["prefetch"].calls, status.hooks["prefetch"].errors) == (3, 0)


def test_old_signatures_are_called_with_what_they_take(managed: Managed, tmp_path: Path) -> None:
    """Members without keywords, with other names, and with fewer arguments are all told."""
    manager = managed("""
    class Demo(Base):
        def sync_turn(self, user, answer): told(self, "sync", user, answer)
        def prefetch(self, user_message): told(self, "prefetch", user_message); return ""
        def handle_tool_call(self, name, args): return "{}"
        def on_session_switch(self, new, *, parent_session_id="", reset=False): told(self, "switch", new, reset)
        def on_memory_write(self, action, target, content): told(self, "write", action, target, content)
        def on_session_end(self, messages, *args): told(self, "end", len(messages))
    """)
    manager.prefetch_all("tea?")
    manager.sync_all("a", "b", messages=[{"role": "user", "content": "a"}])
    manager.on_memory_write("add", "user", "x")
    manager.on_session_switch("s2", reason="new")
    manager.on_session_end([{"role": "user", "content": "a"}])
    assert manager.flush_pending(20)
    assert sorted(seen(tmp_path)) == [
        ["end", 1],
        ["prefetch", "tea?"],
        ["switch", "s2", False],
        ["sync", "a", "b"],
        ["write", "add", "user", "x"],
    ]


def test_a_type_error_inside_is_the_providers_own(managed: Managed, tmp_path: Path) -> None:
    """It is reported as such, and the member is not called again with fewer arguments."""
    manager = managed("""
    class Demo(Base):
        def prefetch(self, query, *, session_id=""):
            told(self, "prefetch")
            return "x" + 1
    """)
    assert manager.prefetch_all("tea?") == ""
    error = manager.status().providers[0].hooks["prefetch"].last_error
    assert error == 'TypeError: can only concatenate str (not "int") to str'
    assert seen(tmp_path) == [["prefetch"]]


def test_no_base_class_and_missing_members(managed: Managed, tmp_path: Path) -> None:
    """A provider of no base class that lacks half of the members works with those it has."""
    manager = managed("""
    class Demo:
        name = "duck"
        def is_available(self): return True
        def initialize(self, session_id, **kwargs): self.kwargs = kwargs
        def get_tool_schemas(self): return []
        def sync_turn(self, user, answer, **kwargs): told(self, "sync", user, answer)
    """)
    manager.prefetch_all("tea?")
    manager.queue_prefetch_all("tea?")
    assert manager.on_pre_compress([]) == ""
    manager.sync_all("a", "b")
    manager.on_session_end([])
    assert manager.flush_pending(20)
    assert seen(tmp_path) == [["sync", "a", "b"]]
    assert manager.status().providers[0].hooks.keys() == {"initialize", "get_tool_schemas", "sync_turn"}


def test_members_that_are_coroutines(managed: Managed, tmp_path: Path) -> None:
    """They are awaited, one after the other on one loop."""
    manager = managed("""
    import asyncio
    class Demo(Base):
        async def initialize(self, session_id, **kwargs):
            self.kwargs, self.loop = kwargs, asyncio.get_running_loop()
        async def prefetch(self, query, *, session_id=""):
            await asyncio.sleep(0)
            return f"{query} on {asyncio.get_running_loop() is self.loop}"
        async def sync_turn(self, user, answer): told(self, "sync", user, answer)
    """)
    assert manager.prefetch_all("tea?") == "tea? on True"
    manager.sync_all("a", "b")
    assert manager.flush_pending(20)
    assert seen(tmp_path) == [["sync", "a", "b"]]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("'{\"a\": 1}'", '{"a": 1}'),
        ("'plain words'", '{"result": "plain words"}'),
        ("{'a': (1, 2)}", '{"a": [1, 2]}'),
        ("[1]", "[1]"),
        ("7", '{"result": 7}'),
        ("None", '{"result": null}'),
        ("'Grüße \\ud83d'", '{"result": "Grüße \ud83d"}'),
    ],
)
def test_results_of_tools(managed: Managed, result: str, text: str) -> None:
    """JSON text passes as it is; everything else is wrapped in it."""
    manager = managed(f"""
    class Demo(Base):
        def get_tool_schemas(self): return [{{"name": "demo_tool", "parameters": {{}}}}]
        def handle_tool_call(self, tool_name, args, **kwargs): return {result}
    """)
    assert manager.handle_tool_call("demo_tool", {}) == text


@pytest.mark.parametrize("raised", ["RuntimeError('no key')", "SystemExit(3)", "KeyError('k')"])
def test_what_a_tool_raises_is_its_answer(managed: Managed, raised: str) -> None:
    """The model is told class and text of the error, as JSON."""
    manager = managed(f"""
    class Demo(Base):
        def get_tool_schemas(self): return [{{"name": "demo_tool", "parameters": {{}}}}]
        def handle_tool_call(self, tool_name, args, **kwargs): raise {raised}
    """)
    told = json.loads(manager.handle_tool_call("demo_tool", {}))["error"]
    expected = {
        "RuntimeError('no key')": "RuntimeError: no key",
        "SystemExit(3)": "handle_tool_call raised SystemExit: 3",
        "KeyError('k')": "KeyError: 'k'",
    }
    assert told == f"demo_tool failed: {expected[raised]}"


@pytest.mark.parametrize("permanent", [False, True])
def test_a_start_that_fails(managed: Managed, permanent: bool) -> None:
    """The provider is left out with its reason, offers no tools, and is tried again unless it is for good."""
    error = "PermanentError('no account')" if permanent else "OSError('no route')"
    manager = managed(f"""
    class Demo(Base):
        def initialize(self, session_id, **kwargs): raise {error}
        def get_tool_schemas(self): return [{{"name": "demo_tool", "parameters": {{}}}}]
        def system_prompt_block(self): return "half alive"
    """)
    status = manager.status().providers[0]
    assert status.state is State.FAILED
    assert status.reason == ("PermanentError: no account" if permanent else "OSError: no route")
    assert status.tools == ()
    assert manager.build_system_prompt() == ""
    seat = manager._registry.external[0]
    assert (seat.retry_at == float("inf")) is permanent


def test_a_slow_start_joins_later(managed: Managed, tmp_path: Path) -> None:
    """Turns go on without it; what is to be kept reaches it when it is there."""
    limits = Limits(prefetch=20, tool_call=20, hook=20, initialize=0.3, session_end=20, shutdown=20)
    manager = managed(
        """
    class Demo(Base):
        def initialize(self, session_id, **kwargs):
            self.kwargs = kwargs
            wait_for(self, "go-on")
        def prefetch(self, query): return "here"
        def sync_turn(self, user, answer): told(self, "sync", user, answer)
    """,
        limits=limits,
    )
    assert manager.status().providers[0].state is State.STARTING
    assert manager.prefetch_all("tea?") == ""
    manager.sync_all("a", "b")
    (tmp_path / "home" / "go-on").touch()
    assert eventually(lambda: manager.prefetch_all("tea?") == "here")
    assert manager.flush_pending(20)
    assert seen(tmp_path)[-1] == ["sync", "a", "b"]


def test_a_recall_that_comes_late_is_used_next_turn(managed: Managed, tmp_path: Path) -> None:
    """A call that was given up goes on: the turn is not held, the status says since when, its answer is used."""
    limits = Limits(prefetch=0.2, tool_call=20, hook=20, initialize=20, session_end=20, shutdown=20)
    manager = managed(
        """
    class Demo(Base):
        calls = 0
        def prefetch(self, query):
            self.calls += 1
            if self.calls == 1:
                wait_for(self, "go-on")
            return f"of {query}"
    """,
        limits=limits,
    )
    assert manager.prefetch_all("tea?") == ""
    assert manager.prefetch_all("cake?") == ""
    status = manager.status().providers[0]
    assert status.stuck_in == "prefetch"
    assert status.stuck_since is not None
    assert time.time() - 60 < status.stuck_since <= time.time()
    assert status.skipped == {"prefetch": 1}
    (tmp_path / "home" / "go-on").touch()
    assert eventually(lambda: manager.status().providers[0].stuck_since is None)
    assert manager.prefetch_all("cake?") == "of cake?\nof tea?"


def test_a_write_that_fails_is_tried_again(managed: Managed, tmp_path: Path) -> None:
    """It stays in the journal until the provider takes it, in order."""
    manager = managed("""
    class Demo(Base):
        failed = 0
        def sync_turn(self, user, answer):
            self.failed += 1
            if self.failed <= 2:
                raise ConnectionError("backend down")
            told(self, "sync", user, answer)
    """)
    manager.sync_all("a", "1")
    manager.sync_all("a", "2")
    assert not manager.flush_pending(5)
    error = manager.status().providers[0].hooks["sync_turn"].last_error
    assert error == "ConnectionError: backend down"
    assert eventually(lambda: manager.flush_pending(5))
    assert seen(tmp_path) == [["sync", "a", "1"], ["sync", "a", "2"]]


def test_a_write_that_can_never_be_taken_is_set_aside(managed: Managed, tmp_path: Path) -> None:
    """PermanentError makes a dead letter, and what comes behind it goes on."""
    manager = managed("""
    class Demo(Base):
        def sync_turn(self, user, answer):
            if answer == "1":
                raise PermanentError("too long")
            told(self, "sync", user, answer)
    """)
    manager.sync_all("a", "1")
    manager.sync_all("a", "2")
    assert manager.flush_pending(20)
    journal = manager.status().journal
    assert journal is not None
    assert journal.dead == 1
    assert seen(tmp_path) == [["sync", "a", "2"]]


def test_several_turns_in_one_call(managed: Managed, tmp_path: Path) -> None:
    """A provider with ``sync_turns`` is found to have it and gets what waited together."""
    manager = managed(
        """
    class Demo(Base):
        def sync_turn(self, user, answer): told(self, "one", user)
        def sync_turns(self, turns):
            turns = list(turns)
            told(self, "many", [turn["user_content"] for turn in turns])
            return len(turns)
    """,
        begin=False,
    )
    assert manager._registry.external[0].implements("sync_turns")
    manager.initialize_all("s1")
    manager.sync_many([_Turn(f"t{number}") for number in range(3)])
    assert manager.flush_pending(20)
    told = seen(tmp_path)
    assert sorted(user for entry in told for user in ([entry[1]] if entry[0] == "one" else entry[1])) == [
        "t0",
        "t1",
        "t2",
    ]


class _Turn:
    def __init__(self, user: str) -> None:
        self.session_id, self.user, self.assistant = "s1", user, "x"
        self.time, self.author, self.key = None, None, user


@pytest.mark.parametrize("version", [1, 2])
def test_a_checkpoint_that_fails(managed: Managed, version: int) -> None:
    """Version 2 stops the compression, version 1 does not."""
    manager = managed(f"""
    class Demo(Base):
        pre_compress_checkpoint_api_version = {version}
        def on_pre_compress(self, messages, *, require_checkpoint=False):
            raise OSError(f"checkpoint {{require_checkpoint}}")
    """)
    if version == 1:
        assert manager.on_pre_compress([]) == ""
    else:
        with pytest.raises(ProviderUnavailable, match="its checkpoint failed: OSError: checkpoint True"):
            manager.on_pre_compress([])


def test_records_for_the_persons_commands(managed: Managed) -> None:
    """Search, export and forgetting answer alike; where a provider has them not, the answer is None."""
    manager = managed("""
    class Demo(Base):
        def search_records(self, query, *, limit=10): return [{"id": "1", "text": query, "limit": limit}]
        def export_records(self): return ({"id": str(n)} for n in range(3))
    """)
    assert manager.search_records("tea", limit=2) == [{"id": "1", "text": "tea", "limit": 2}]
    assert list(manager.export_records() or ()) == [{"id": "0"}, {"id": "1"}, {"id": "2"}]
    assert manager.forget_records() is None


def test_arguments_are_copies(managed: Managed) -> None:
    """A provider that changes what it is given changes nothing of the agent's."""
    manager = managed("""
    class Demo(Base):
        def on_pre_compress(self, messages, **kwargs):
            messages[0]["content"] = "changed"
            messages.clear()
            return ""
    """)
    messages = [{"role": "user", "content": "hello"}]
    manager.on_pre_compress(messages)
    assert messages == [{"role": "user", "content": "hello"}]


def test_functions_of_the_host_are_called(managed: Managed) -> None:
    """What the host gives to ``initialize`` can be called from any later call."""
    told: list[str] = []
    manager = managed(
        """
    class Demo(Base):
        def prefetch(self, query):
            self.kwargs["status_callback"](f"recalling {query}")
            return "x"
    """,
        status_callback=told.append,
    )
    manager.prefetch_all("tea")
    assert told == ["recalling tea"]


def test_a_shutdown_that_hangs_is_reported(managed: Managed, tmp_path: Path) -> None:
    """It holds the end for the limit of the end and no longer."""
    manager = managed("""
    class Demo(Base):
        def shutdown(self): wait_for(self, "go-on")
    """)
    report = manager.shutdown_all(0.5)
    assert report.failed == {"demo": "shutdown did not return"}
    (tmp_path / "home" / "go-on").touch()
    assert eventually(lambda: not any("demo" in thread.name for thread in threading.enumerate()))
