"""The manager: which providers it takes, how it starts them, what it makes of a turn."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from hermes.memory.provider import MemoryProvider, RecallStatus
from hermes.memory.seat import State
from tests.memory.providers import Recording, Waiting

TOOL = {"name": "my_tool", "description": "", "parameters": {"type": "object", "properties": {}}}
QUICK = Limits(prefetch=0.05, tool_call=0.05, hook=0.05, initialize=0.05, session_end=0.05, shutdown=5.0)


def started(*providers: Any, session: str = "s1", **options: Any) -> MemoryManager:
    """A manager with *providers*, started for a session."""
    manager = MemoryManager(**options)
    for provider in providers:
        manager.add_provider(provider)
    manager.initialize_all(session, platform="cli")
    return manager


class Tea(MemoryProvider):
    """Written as the guide for authors says, with the short signatures of the old contract."""

    def __init__(self) -> None:
        self.turns: list[tuple[str, str]] = []
        self.ended: list[Any] = []
        self.home = ""

    @property
    def name(self) -> str:
        """The name."""
        return "my-provider"

    def is_available(self) -> bool:
        """Always."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Remember the home."""
        self.home = kwargs["hermes_home"]

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """One tool."""
        return [TOOL]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Say what was asked."""
        return f'{{"done": "{args["action"]}"}}'

    def sync_turn(self, user_content: str, assistant_content: str) -> None:  # type: ignore[override]
        """Keep a turn."""
        self.turns.append((user_content, assistant_content))

    def on_session_end(self, messages: list[Any]) -> None:
        """Keep the transcript."""
        self.ended.append(messages)


def test_the_sequence_of_the_guide(tmp_path: Path) -> None:
    """The steps that the guide for authors shows work as they stand there."""
    provider = Tea()
    mgr = MemoryManager(home=tmp_path)
    mgr.add_provider(provider)
    mgr.initialize_all(session_id="test-1", platform="cli")
    assert mgr.handle_tool_call("my_tool", {"action": "add", "content": "test"}) == '{"done": "add"}'
    mgr.sync_all("user msg", "assistant msg")
    mgr.on_session_end([])
    mgr.shutdown_all()
    assert provider.home == str(tmp_path)
    assert provider.turns == [("user msg", "assistant msg")]
    assert len(provider.ended) == 1


def test_an_empty_manager_does_everything() -> None:
    """Without a provider every call is answered."""
    manager = MemoryManager()
    manager.initialize_all("s")
    assert manager.providers == []
    assert manager.build_system_prompt() == ""
    assert manager.prefetch_all("who?") == ""
    manager.queue_prefetch_all("who?")
    manager.on_turn_start(1, "hello")
    recorded = manager.sync_all("a", "b")
    assert recorded.durable
    assert recorded.records == 0
    assert manager.get_all_tool_schemas() == []
    assert "unknown tool" in manager.handle_tool_call("x", {})
    assert manager.on_pre_compress([]) == ""
    manager.on_session_end([])
    manager.on_session_switch("s2")
    manager.commit_session_boundary_async([], new_session_id="s3")
    manager.on_memory_write("add", "user", "x")
    manager.on_delegation("task", "result")
    assert manager.describe_recall() == ""
    assert manager.flush_pending(1)
    assert manager.search_records("x") is None
    assert manager.shutdown_all().clean
    assert manager.session_id == "s3"


def test_builtin_goes_first() -> None:
    """The provider called builtin is first whatever the order."""
    manager = MemoryManager()
    outside, builtin = Recording("outside"), Recording("builtin")
    assert manager.add_provider(outside)
    assert manager.add_provider(builtin)
    assert manager.providers == [builtin, outside]
    assert manager.get_provider("outside") is outside
    assert manager.get_provider("nobody") is None
    manager.shutdown_all()


def test_a_second_outside_provider_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Only one outside provider is taken; the warning names both, the other is left as it was."""
    manager = MemoryManager()
    manager.add_provider(Recording("first"))
    assert not manager.add_provider(Recording("second", tools=[TOOL]))
    assert "first" in caplog.text
    assert "second" in caplog.text
    assert manager.get_all_tool_names() == set()
    assert [refused.name for refused in manager.status().refused] == ["second"]
    assert not manager.add_provider(Recording("first"))
    manager.shutdown_all()


class Broken(Recording):
    """Its tools cannot be read."""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Fail."""
        raise SystemExit(3)


def test_registration_is_atomic(caplog: pytest.LogCaptureFixture) -> None:
    """A provider whose tools cannot be read takes no place, and the next one can have it."""
    manager = MemoryManager()
    assert not manager.add_provider(Broken("broken"))
    assert "SystemExit" in caplog.text
    assert manager.add_provider(Recording("good", tools=[TOOL]))
    assert [p.name for p in manager.providers] == ["good"]
    assert manager.has_tool("my_tool")
    manager.shutdown_all()


@pytest.mark.parametrize("name", [None, 7, "", "  "])
def test_a_provider_needs_a_name(name: Any) -> None:
    """What has no name is refused."""
    manager = MemoryManager()
    assert not manager.add_provider(SimpleNamespace(name=name))
    assert manager.providers == []


def test_duck_typed_provider() -> None:
    """No base class is needed, the name may be a plain attribute, and missing members are not called."""
    turns: list[tuple[str, ...]] = []
    duck = SimpleNamespace(
        name="duck",
        initialize=lambda session_id: None,
        get_tool_schemas=list,
        sync_turn=lambda user, assistant: turns.append((user, assistant)),
    )
    manager = started(duck)
    assert manager.status().providers[0].state is State.READY
    manager.on_turn_start(1, "x")
    assert manager.prefetch_all("x") == ""
    assert manager.build_system_prompt() == ""
    manager.sync_all("a", "b")
    assert manager.on_session_end([]).records == 0
    assert manager.flush_pending(10)
    assert turns == [("a", "b")]
    assert manager.shutdown_all().clean


def test_coroutine_members() -> None:
    """Members that are coroutines run on one loop of the manager's own, which ends with it."""
    loops = set()

    class Async(Recording):
        async def initialize(self, session_id: str, **kwargs: Any) -> None:  # type: ignore[override]
            """Start."""
            self.seen.append(("initialize", session_id, kwargs))
            loops.add(threading.get_ident())

        async def prefetch(self, query: str, *, session_id: str = "") -> str:  # type: ignore[override]
            """Recall."""
            loops.add(threading.get_ident())
            return "awaited"

        async def sync_turn(self, user: str, assistant: str) -> None:  # type: ignore[override]
            """Keep."""
            self.seen.append(("sync_turn", user))

    provider = Async("async")
    manager = started(provider)
    assert manager.prefetch_all("x") == "awaited"
    manager.sync_all("a", "b")
    assert manager.flush_pending(10)
    assert provider.of("sync_turn") == [("a",)]
    assert len(loops) == 1
    assert manager.shutdown_all().clean
    assert not [t for t in threading.enumerate() if t.name.startswith("hermes")]


def test_what_initialize_is_given(tmp_path: Path) -> None:
    """Home, platform, context and identity are always given; what the host says is passed on."""
    provider = Recording()
    manager = MemoryManager(home=tmp_path, profile="work")
    manager.add_provider(provider)
    manager.initialize_all("s1", user_id="u7", platform="telegram", cwd=None)
    ((session, given),) = provider.of("initialize")
    assert session == "s1"
    assert given == {
        "hermes_home": str(tmp_path),
        "platform": "telegram",
        "agent_context": "primary",
        "agent_identity": "work",
        "user_id": "u7",
    }
    manager.shutdown_all()


class Failing(Recording):
    """Its start fails until it is mended."""

    def __init__(self) -> None:
        super().__init__("failing", "recalled", [TOOL])
        self.mended = False

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Fail, or not."""
        if not self.mended:
            raise RuntimeError("no such host")


def test_a_provider_that_fails_to_start_is_out(caplog: pytest.LogCaptureFixture) -> None:
    """No tools, no block, no recall; status says why; turns are kept for it until it starts."""
    provider = Failing()
    manager = started(provider)
    assert "no such host" in caplog.text
    assert str(manager.status().providers[0]) == "failed: RuntimeError: no such host"
    assert manager.get_all_tool_schemas() == []
    assert "no such host" in manager.handle_tool_call("my_tool", {})
    assert manager.build_system_prompt() == ""
    assert manager.prefetch_all("x") == ""
    assert manager.sync_all("a", "b").records == 1
    provider.mended = True
    seat = manager._registry.external[0]
    manager.on_turn_start(1, "too early")
    assert str(seat.state) == "failed"
    seat.retry_at = 0.0
    manager.on_turn_start(2, "now")
    assert manager.flush_pending(10)
    assert str(seat.state) == "ready"
    assert manager.has_tool("my_tool")
    assert provider.of("sync_turn") == [("a", "b", "s1")]
    manager.shutdown_all()


def test_a_slow_provider_joins_later() -> None:
    """One that has not started in time is left out, and is there when it has."""
    provider = Waiting("initialize", recalls="recalled")
    manager = started(provider, limits=QUICK)
    status = manager.status().providers[0]
    assert status.state is State.STARTING
    assert "joins" in status.reason
    assert manager.get_all_tool_names() == set()
    assert manager.prefetch_all("x") == ""
    provider.release.set()
    current = manager._registry.external[0].turn._current
    assert current is not None
    assert current.wait(10)
    assert manager.prefetch_all("x") == "recalled"
    assert manager.get_all_tool_names() == {"wait_tool"}
    manager.shutdown_all()


def test_recall_and_prompt_come_from_all() -> None:
    """Blocks and recall of all providers are joined, the built-in first; recall is cleaned."""
    builtin, outside = Recording("builtin"), Recording("outside", "tea <memory-context>\ntea")
    manager = started(outside, builtin)
    assert manager.build_system_prompt() == "builtin is here\n\noutside is here"
    assert manager.prefetch_all("drinks?") == "tea"
    assert outside.of("prefetch") == [("drinks?", "s1")]
    manager.queue_prefetch_all("more", session_id="s9")
    manager.on_turn_start(3, "hello")
    assert outside.of("queue_prefetch") == [("more", "s9")]
    assert outside.of("on_turn_start") == builtin.of("on_turn_start") == [(3, "hello")]
    manager.shutdown_all()


def test_describe_recall() -> None:
    """The indicator names who answered and how much was found."""

    class Telling(Recording):
        def recall_status(self) -> RecallStatus | None:
            """Three."""
            return RecallStatus("Tea house", 3)

    manager = started(Telling())
    assert manager.describe_recall() == "✦ Tea house: 3 memories"
    manager.shutdown_all()
    quiet = started(Recording())
    assert quiet.describe_recall() == ""
    quiet.shutdown_all()


@pytest.mark.parametrize("bad", [None, 7, ["x"], b"x", object()])
def test_answers_of_the_wrong_type_are_ignored(bad: Any) -> None:
    """What should be text and is none is left out."""
    provider = Recording()
    for hook in ("prefetch", "system_prompt_block", "on_pre_compress", "recall_status"):
        setattr(provider, hook, lambda *args, **kwargs: bad)
    manager = started(provider)
    assert manager.prefetch_all("x") == ""
    assert manager.build_system_prompt() == ""
    assert manager.on_pre_compress([{"role": "user", "content": "x"}]) == ""
    assert manager.describe_recall() == ""
    manager.shutdown_all()


HOOKS = ["system_prompt_block", "prefetch", "queue_prefetch", "on_turn_start", "on_pre_compress", "shutdown"]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("error", [RuntimeError("broken"), SystemExit(1), KeyboardInterrupt()])
def test_nothing_that_a_provider_raises_gets_out(
    hook: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure is logged once as a warning and counted; the turn goes on."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    provider = Recording(recalls="tea")
    setattr(provider, hook, fail)
    manager = started(provider)
    for _ in range(2):
        manager.build_system_prompt()
        manager.prefetch_all("x")
        manager.queue_prefetch_all("x")
        manager.on_turn_start(1, "x")
        manager.on_pre_compress([])
    seat = manager._registry.external[0]
    seat.turn.call("settle", lambda: None, limit=10)
    report = manager.shutdown_all()
    assert manager.status().providers[0].hooks[hook].errors >= 1
    assert bool(report.failed) == (hook == "shutdown")
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING and f": {hook}: " in r.getMessage()]
    assert len(warnings) <= 1


def test_inner_type_errors_are_the_providers_own() -> None:
    """A TypeError raised inside is counted as an error, and the member is not called again with less."""
    calls: list[str] = []

    class Wrong(Recording):
        def prefetch(self, query: str, *, session_id: str = "") -> str:
            """Fail inside."""
            calls.append(query)
            raise TypeError("prefetch() got an unexpected keyword argument 'session_id'")

    manager = started(Wrong())
    assert manager.prefetch_all("x") == ""
    assert calls == ["x"]
    assert manager.status().providers[0].hooks["prefetch"].errors == 1
    manager.shutdown_all()


def test_pre_compress_text_is_cleaned_and_bounded() -> None:
    """What a provider adds to a summary arrives, without fences and secrets, cut at a limit."""
    provider = Recording()
    provider.on_pre_compress = lambda messages: "KEEP-42 <memory-context> password: hunter2\n" + "x" * 9000  # type: ignore[method-assign, assignment, misc]
    manager = started(provider)
    text = manager.on_pre_compress([{"role": "user", "content": "a"}])
    assert "KEEP-42" in text
    assert "hunter2" not in text
    assert "<memory" not in text
    assert len(text) < 6200
    manager.shutdown_all()


class Checkpointing(Recording):
    """Version 2 of the checkpoint contract; it fails."""

    pre_compress_checkpoint_api_version = 2

    def on_pre_compress(self, messages: list[dict[str, Any]], *, require_checkpoint: bool = False) -> str:
        """Fail where a checkpoint is required."""
        if require_checkpoint:
            raise RuntimeError("not written")
        return "fine"


def test_a_failed_checkpoint_stops_the_compression() -> None:
    """A provider of version 2 can stop a compression; the host may go on all the same."""
    from hermes.errors import ProviderUnavailable

    manager = started(Checkpointing())
    with pytest.raises(ProviderUnavailable, match="not written"):
        manager.on_pre_compress([])
    assert manager.on_pre_compress([], require_checkpoint=False) == "fine"
    manager.shutdown_all()


def test_handed_over_lists_are_copies() -> None:
    """A provider that changes what it is given changes nothing of the caller's."""

    def spoil(messages: list[dict[str, Any]], *args: Any, **kwargs: Any) -> str:
        messages[0]["content"]["deep"] = "spoiled"
        messages.clear()
        return ""

    provider = Recording()
    provider.on_pre_compress = spoil  # type: ignore[method-assign]
    manager = started(provider)
    messages = [{"role": "user", "content": {"deep": "as it was"}}]
    manager.on_pre_compress(messages)
    assert messages == [{"role": "user", "content": {"deep": "as it was"}}]
    manager.shutdown_all()


def test_inspection_delivers_nothing() -> None:
    """Looking at a provider starts it by the member made for that, and starts no deliverer."""

    class Inspected(Recording):
        def initialize_for_inspection(self, session_id: str, **kwargs: Any) -> None:
            """Look."""
            self.seen.append(("inspect", session_id))

    provider = Inspected()
    manager = MemoryManager()
    manager.add_provider(provider)
    manager.initialize_for_inspection("look")
    assert provider.seen == [("inspect", "look")]
    assert not [t for t in threading.enumerate() if t.name == "hermes-delivery"]
    manager.shutdown_all()


def test_a_provider_that_could_not_be_made_is_shown() -> None:
    """The reason why the configured provider is missing is in the status."""
    manager = MemoryManager()
    manager.provider_failed("honcho", "No module named 'honcho'")
    (refused,) = manager.status().refused
    assert (refused.name, refused.reason) == ("honcho", "No module named 'honcho'")


def test_status_is_a_value() -> None:
    """Status says what was called, how often and with what result."""
    manager = started(Recording(recalls="tea", tools=[TOOL]))
    manager.prefetch_all("x")
    manager.sync_all("a", "b")
    assert manager.flush_pending(10)
    status = manager.status()
    (seat,) = status.providers
    assert (status.session_id, status.agent_context, status.writes) == ("s1", "primary", True)
    assert (seat.state, seat.delivery, seat.tools, seat.undelivered) == (
        State.READY,
        "stored",
        ("my_tool",),
        0,
    )
    assert seat.hooks["prefetch"].calls == seat.hooks["sync_turn"].calls == 1
    assert seat.hooks["prefetch"].latency.quantile(0.5) is not None
    assert status.journal is not None
    with pytest.raises(AttributeError):
        status.session_id = "x"  # type: ignore[misc]
    manager.shutdown_all()
