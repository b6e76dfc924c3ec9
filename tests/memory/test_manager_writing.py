"""What is kept of a conversation: every completed turn, clean, in order, and nothing else."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from hermes.errors import PermanentError
from hermes.memory.builtin import BuiltinMemoryProvider
from hermes.memory.fences import build_memory_context_block
from hermes.memory.journal import Journal
from hermes.memory.manager import MemoryManager
from hermes.paths import ProfilePaths
from tests.memory.providers import Recording, Waiting
from tests.memory.test_manager import QUICK, started


def test_a_turn_is_recorded_before_it_is_delivered(tmp_path: Path) -> None:
    """The turn is on disk when the call returns, and reaches the provider with its key, time and author."""
    provider = Recording()
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        recorded = manager.sync_all(
            "hello",
            "hi",
            messages=[{"role": "user", "content": "hello"}],
            turn_author="ann",
            idempotency_key="k1",
            turn_time=1234.5,
        )
        assert recorded.durable
        assert recorded.records == 1
        assert manager.flush_pending(10)
        assert provider.of("sync_turn") == [("hello", "hi", "s1")]
        assert provider.last_turn == {
            "messages": [{"role": "user", "content": "hello"}],
            "turn_author": "ann",
            "idempotency_key": "k1",
            "turn_time": 1234.5,
        }
        manager.shutdown_all()


def test_in_memory_is_said_not_to_be_durable() -> None:
    """Without a journal file the turn is delivered, and the caller is told that it is in memory only."""
    provider = Recording()
    manager = started(provider)
    recorded = manager.sync_all("a", "b")
    assert not recorded.durable
    assert recorded.records == 1
    assert manager.shutdown_all().clean
    assert provider.of("sync_turn") == [("a", "b", "s1")]


@pytest.mark.parametrize(
    ("user", "assistant", "expected"),
    [
        ([{"type": "image_url", "image_url": {"url": "x"}}], "a cat", ("[image]", "a cat")),
        ("", "an answer", ("", "an answer")),
        (None, "an answer", ("", "an answer")),
        ("a question", None, ("a question", "")),
        ('<skill name="x">steps</skill> do it', "done", ("do it", "done")),
        ("api_key: sk-test-abc123", "I saw sk-test-abc123", ("api_key: ***", "I saw ***")),
        (f"q\n{build_memory_context_block('old')}", f"{build_memory_context_block('old')}\na", ("q", "a")),
        ("half \ud83d", "b", None),
    ],
)
def test_turns_are_cleaned_and_none_is_lost(user: Any, assistant: Any, expected: Any) -> None:
    """Images, empty sides, skills, secrets, recall and broken characters all leave a turn."""
    provider = Recording()
    manager = started(provider)
    assert manager.sync_all(user, assistant).records == 1
    assert manager.flush_pending(10)
    ((said, answered, _),) = provider.of("sync_turn")
    assert expected is None or (said, answered) == expected
    manager.shutdown_all()


def test_redaction_can_be_off() -> None:
    """With redaction off, secrets are handed over as they are."""
    provider = Recording()
    manager = started(provider, redact=False)
    manager.sync_all("api_key: sk-test-abc123", "b")
    assert manager.flush_pending(10)
    assert provider.of("sync_turn")[0][0] == "api_key: sk-test-abc123"
    manager.shutdown_all()


def test_secrets_do_not_leave_by_recall_either() -> None:
    """The question of a recall and the message of a turn are masked; status counts."""
    provider = Recording()
    manager = started(provider)
    text = "is password: hunter22 fine?"
    manager.on_turn_start(1, text, author_name="hunter22: password: hunter22")
    manager.prefetch_all(text)
    manager.queue_prefetch_all(text)
    assert "hunter22" not in json.dumps(provider.seen)
    assert manager.status().redacted >= 1
    manager.shutdown_all()


def test_what_is_not_kept_is_counted() -> None:
    """Interrupted turns and those without any content are skipped, with the reason."""
    provider = Recording()
    manager = started(provider)
    assert manager.sync_all("a", "cut o", interrupted=True).reason == "interrupted"
    recorded = manager.sync_all("  ", None)
    assert (recorded.durable, recorded.records, recorded.reason) == (True, 0, "empty")
    assert manager.flush_pending(10)
    assert provider.of("sync_turn") == []
    assert manager.status().skipped == {"interrupted": 1, "empty": 1}
    manager.shutdown_all()


@pytest.mark.parametrize(
    "given", [{"platform": "cron"}, {"agent_context": "subagent"}, {"agent_context": "flush"}]
)
def test_jobs_and_subagents_write_nothing(given: dict[str, Any]) -> None:
    """Outside the primary context nothing of the conversation is kept; recall works, the provider is told."""
    provider = Recording(recalls="tea")
    manager = MemoryManager()
    manager.add_provider(provider)
    manager.initialize_all("job", **given)
    context = provider.of("initialize")[0][1]["agent_context"]
    assert context == next(iter(given.values()))
    manager.sync_all("a", "b")
    manager.on_session_end([{"role": "user", "content": "a"}])
    manager.on_delegation("t", "r")
    assert manager.prefetch_all("x") == "tea"
    assert manager.flush_pending(10)
    assert not manager.status().writes
    assert sum(manager.status().skipped.values()) == 3
    manager.shutdown_all()
    assert {seen[0] for seen in provider.seen} == {"initialize", "prefetch", "shutdown"}


def test_contexts_that_write_can_be_chosen() -> None:
    """A host may keep the turns of other contexts too."""
    provider = Recording()
    manager = MemoryManager(write_contexts=("primary", "cron"))
    manager.add_provider(provider)
    manager.initialize_all("job", platform="cron")
    assert manager.sync_all("a", "b").records == 1
    manager.shutdown_all()


def test_a_boundary_is_end_then_switch() -> None:
    """A boundary returns at once; the old session ends strictly before the new one begins."""
    provider = Waiting("on_session_end")
    manager = started(provider)
    manager.sync_all("in s1", "a")
    began = time.monotonic()
    manager.commit_session_boundary_async([{"role": "user", "content": "in s1"}], new_session_id="s2")
    manager.sync_all("in s2", "b")
    assert time.monotonic() - began < 5  # the provider waits for us
    assert provider.entered.wait(10)
    assert provider.of("on_session_switch") == []
    provider.release.set()
    assert manager.flush_pending(10)
    order = [seen[0] for seen in provider.seen if seen[0] != "initialize"]
    assert order == ["sync_turn", "on_session_end", "on_session_switch", "sync_turn"]
    assert provider.of("on_session_end") == [([{"role": "user", "content": "in s1"}],)]
    ((new, facts),) = provider.of("on_session_switch")
    assert new == "s2"
    assert facts == {"parent_session_id": "s1", "reset": True, "reason": "new_session"}
    assert [turn[2] for turn in provider.of("sync_turn")] == ["s1", "s2"]
    manager.shutdown_all()


def test_end_is_told_once_and_with_what_was_said() -> None:
    """An empty transcript is filled from the recorded turns; a second end is not told."""
    provider = Recording()
    manager = started(provider)
    for number in range(3):
        manager.sync_all(f"q{number}", f"a{number}")
    manager.on_session_end([])
    manager.on_session_end([])
    manager.shutdown_all()
    ((messages,),) = provider.of("on_session_end")
    assert [m["content"] for m in messages] == ["q0", "a0", "q1", "a1", "q2", "a2"]


def test_a_quick_provider_has_been_told_when_the_switch_returns() -> None:
    """The switch is recorded and, where the provider is quick, delivered before the next recall."""
    provider = Recording()
    manager = started(provider)
    manager.on_session_switch("s2", parent_session_id="s1", rewound=True, reason="undo")
    assert manager.session_id == "s2"
    assert manager.flush_pending(10)
    ((_, facts),) = provider.of("on_session_switch")
    assert facts == {"parent_session_id": "s1", "reset": False, "rewound": True, "reason": "undo"}
    manager.prefetch_all("x")
    assert provider.of("prefetch") == [("x", "s2")]
    manager.shutdown_all()


def test_a_compressed_session_goes_on(tmp_path: Path) -> None:
    """A session that was compressed into another has one end, with the turns of both."""
    provider = Recording()
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        manager.sync_all("one", "1")
        manager.on_session_switch("s2", parent_session_id="s1", reason="compression")
        manager.sync_all("two", "2")
        manager.on_session_end([])
        manager.shutdown_all()
    ((messages,),) = provider.of("on_session_end")
    assert [m["content"] for m in messages] == ["one", "1", "two", "2"]


def test_a_permanent_refusal_is_set_aside() -> None:
    """A record that the provider refuses for good does not hold the others."""

    class Picky(Recording):
        def sync_turn(self, user_content: str, assistant_content: str, **kwargs: Any) -> None:
            """Refuse one."""
            if user_content == "bad":
                raise PermanentError("too long")
            super().sync_turn(user_content, assistant_content, **kwargs)

    provider = Picky()
    manager = started(provider)
    manager.sync_all("bad", "x")
    manager.sync_all("good", "x")
    assert manager.flush_pending(10)
    assert [turn[0] for turn in provider.of("sync_turn")] == ["good"]
    journal = manager.status().journal
    assert journal is not None
    assert journal.dead == 1
    manager.shutdown_all()


def test_an_outage_loses_nothing() -> None:
    """Turns of an outage are delivered after it, in order; the caller never notices."""

    class Down(Recording):
        up = False

        def sync_turn(self, user_content: str, assistant_content: str, **kwargs: Any) -> None:
            """Fail while down, also by what is no Exception."""
            if not self.up:
                raise SystemExit(1)
            super().sync_turn(user_content, assistant_content, **kwargs)

    provider = Down()
    manager = started(provider)
    for number in range(10):
        assert manager.sync_all(str(number), "x").records == 1
    assert not manager.flush_pending(0.2)
    assert manager.status().providers[0].undelivered == 10
    provider.up = True
    assert manager.flush_pending(10)
    assert [turn[0] for turn in provider.of("sync_turn")] == [str(n) for n in range(10)]
    manager.shutdown_all()


@attrs.frozen
class ReadTurn:
    """A turn of a file."""

    user: str
    assistant: str
    key: str
    session_id: str = "file"
    time: float | None = 5.0
    author: str | None = "ann"
    messages: tuple[dict[str, Any], ...] = ()


def test_ingesting_twice_adds_nothing(tmp_path: Path) -> None:
    """Turns from elsewhere are taken once by their key, equal texts under two keys twice, and end no session."""
    provider = Recording()
    turns = [ReadTurn("a", "b", "k1"), ReadTurn("a", "b", "k2"), ReadTurn("", "", "k3")]
    with Journal(tmp_path / "journal.db") as journal:
        manager = started(provider, journal=journal)
        assert manager.sync_many(turns).records == 2
        assert manager.flush_pending(10)
        assert manager.sync_many([*turns, ReadTurn("c", "d", "k4")]).records == 1
        manager.shutdown_all()
    assert [turn[:2] for turn in provider.of("sync_turn")] == [("a", "b"), ("a", "b"), ("c", "d")]
    assert provider.last_turn["turn_author"] == "ann"
    assert provider.last_turn["turn_time"] == 5.0


def mirrored(provider: Recording) -> list[tuple[Any, ...]]:
    """What was mirrored: action, target, content, old text."""
    return [(a, t, c, (m or {}).get("old_text", "")) for a, t, c, m in provider.of("on_memory_write")]


def test_writes_of_the_built_in_tool_are_mirrored_once(tmp_path: Path) -> None:
    """add, replace and remove are told with what was there before; a failure is not told."""
    provider = Recording()
    paths = ProfilePaths(root=tmp_path, home=tmp_path)
    manager = started(BuiltinMemoryProvider(paths), provider)
    for args in (
        {"action": "add", "target": "user", "content": "likes tea"},
        {"action": "replace", "target": "user", "old_text": "tea", "content": "likes coffee"},
        {"action": "replace", "target": "user", "old_text": "nothing like it", "content": "x"},
        {"action": "remove", "target": "user", "old_text": "coffee"},
    ):
        result = manager.handle_tool_call("memory", args, tool_call_id="c1")
        assert manager.notify_memory_tool_write(result, args) == 0
    assert manager.flush_pending(10)
    assert [m[:3] for m in mirrored(provider)] == [
        ("add", "user", "likes tea"),
        ("replace", "user", "likes coffee"),
        ("remove", "user", "likes coffee"),
    ]
    assert all(m[3] for m in mirrored(provider)[1:])
    metadata = provider.of("on_memory_write")[0][3]
    assert metadata["session_id"] == "s1"
    assert metadata["tool_name"] == "memory"
    assert metadata["tool_call_id"] == "c1"
    assert metadata["idempotency_key"]
    manager.shutdown_all()


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ('{"success": true}', [("add", "memory", "x", "")]),
        ({"success": True}, [("add", "memory", "x", "")]),
        ('{"success": false}', []),
        ('{"success": true, "staged": true}', []),
        ("not json", []),
        ("[]", []),
        (None, []),
    ],
)
def test_a_hosts_own_memory_tool(result: Any, expected: Any) -> None:
    """A host that ran the tool itself tells of it: mirrored on success and if not staged."""
    provider = Recording()
    manager = started(provider)
    count = manager.notify_memory_tool_write(
        result, {"action": "add", "content": "x"}, build_metadata=lambda: {"write_origin": "host"}
    )
    assert count == len(expected)
    assert manager.flush_pending(10)
    assert mirrored(provider) == expected
    assert all(m[3]["write_origin"] == "host" for m in provider.of("on_memory_write"))
    manager.shutdown_all()


def test_a_batch_is_mirrored_in_parts() -> None:
    """Each operation of a batch is told on its own; a broken metadata callback spoils nothing."""
    provider = Recording()
    manager = started(provider)
    args = {
        "target": "user",
        "operations": [{"action": "add", "content": "a"}, {"action": "remove", "old_text": "b"}, "nonsense"],
    }
    assert manager.notify_memory_tool_write('{"success": true}', args, build_metadata=lambda: 1 / 0) == 2
    assert manager.flush_pending(10)
    assert mirrored(provider) == [("add", "user", "a", ""), ("remove", "user", "b", "b")]
    manager.shutdown_all()


def test_delegations_are_told() -> None:
    """A finished subagent reaches the provider, whatever form its member has."""
    provider = Recording()
    manager = started(provider)
    manager.on_delegation("task", "result", child_session_id="c1", model="m")
    assert manager.flush_pending(10)
    assert provider.of("on_delegation") == [("task", "result", "c1")]
    manager.shutdown_all()


def test_nothing_is_kept_for_a_provider_that_keeps_nothing() -> None:
    """A provider without a member of its own for turns or ends is owed none."""
    from tests.memory.test_manager import Tea

    manager = started(Tea())
    assert manager.on_delegation("t", "r").records == 0
    assert manager.on_session_switch("s2").records == 0
    assert manager.sync_all("a", "b").records == 1
    manager.shutdown_all()


def test_messages_are_not_recorded_for_a_provider_that_takes_none(tmp_path: Path) -> None:
    """The whole conversation is not written down with every turn where nobody wants it."""
    from tests.memory.test_manager import Tea

    with Journal(tmp_path / "journal.db") as journal:
        provider = Waiting("sync_turn")
        manager = started(provider, journal=journal, limits=QUICK)
        manager.sync_all("a", "b", messages=[{"role": "user", "content": "long"}])
        assert journal.records()[0].payload["messages"] == [{"role": "user", "content": "long"}]
        provider.release.set()
        manager.shutdown_all()
    with Journal(tmp_path / "other.db") as journal:
        manager = MemoryManager(journal=journal)
        manager.add_provider(Tea())
        entries = manager._outgoing._handover.entries
        from hermes.memory.journal import Kind

        (entry,) = entries(Kind.TURN, "s", {"user": "a", "assistant": "b", "messages": [{"role": "user"}]})
        assert entry.payload["messages"] is None
        manager.shutdown_all()
