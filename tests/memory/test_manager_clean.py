"""Nothing leaves for an outside provider by any of its members that must not: secrets, and recall of before."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hermes.memory.fences import build_memory_context_block
from hermes.memory.manager import MemoryManager
from tests.memory.providers import Recording
from tests.memory.test_manager import started

SECRET = "sk-proj-abcdefghijklmnopqrstuvwx"
RECALLED = "the goose flies at midnight"

EXITS: dict[str, Callable[[MemoryManager, str], Any]] = {
    "prefetch": lambda m, t: m.prefetch_all(f"question {t}"),
    "queue_prefetch": lambda m, t: m.queue_prefetch_all(f"question {t}"),
    "on_turn_start": lambda m, t: m.on_turn_start(1, f"message {t}", remaining=t, nested={"list": [t]}),
    "sync_turn": lambda m, t: m.sync_all(f"asked {t}", f"answered {t}", messages=conversation(t)),
    "handle_tool_call": lambda m, t: m.handle_tool_call("note", {"text": f"args {t}", "list": [{"deep": t}]}),
    "on_memory_write": lambda m, t: m.on_memory_write(
        "replace", "user", f"now {t}", {"old_text": f"was {t}"}
    ),
    "on_delegation": lambda m, t: m.on_delegation(
        f"task {t}", f"result {t}", child_session_id="c", extra=[t]
    ),
    "on_pre_compress": lambda m, t: m.on_pre_compress(conversation(t)),
    "on_session_end": lambda m, t: m.on_session_end(conversation(t)),
    "on_session_switch": lambda m, t: m.on_session_switch("s2", reason=f"because {t}"),
    "boundary": lambda m, t: m.commit_session_boundary_async(conversation(t), new_session_id="s3"),
}


def conversation(text: str) -> list[dict[str, Any]]:
    """Messages of every role, with *text* where it may stand."""
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": json.dumps({"x": text})}}
    return [
        {"role": "user", "content": [{"type": "text", "text": f"parts {text}"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"echo {text}"},
        {"role": "assistant", "content": f"said {text}"},
    ]


class Noting(Recording):
    """A provider with a tool, that also looks at what is compressed."""

    def __init__(self) -> None:
        super().__init__(recalls="", tools=[{"name": "note", "parameters": {"type": "object"}}])

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """Keep everything."""
        self.seen.append(("on_turn_start", turn_number, message, kwargs))

    def on_pre_compress(self, messages: list[dict[str, Any]], *, require_checkpoint: bool = False) -> str:
        """Keep everything, and answer with it."""
        self.seen.append(("on_pre_compress", messages))
        return json.dumps(messages)

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **kwargs: Any) -> None:
        """Keep everything."""
        self.seen.append(("on_delegation", task, result, kwargs))

    def sync_turn(self, *args: Any, messages: Any = None, **kwargs: Any) -> None:
        """Keep everything."""
        self.seen.append(("sync_turn", args, messages))


@pytest.mark.parametrize("way", EXITS)
@pytest.mark.parametrize("form", [f"api_key: {SECRET}", f"it is {SECRET}.", f'{{"token": "{SECRET}"}}'])
def test_no_secret_leaves_by_any_member(way: str, form: str) -> None:
    """A key that was said, echoed by a tool or given as an argument is masked, whichever way it goes."""
    provider = Noting()
    manager = started(provider)
    answer = EXITS[way](manager, form)
    assert manager.flush_pending(10)
    manager.shutdown_all()
    assert len(provider.seen) > 2, "the provider was told nothing"
    assert SECRET not in json.dumps(provider.seen, default=str)
    assert SECRET not in json.dumps(answer, default=str)
    assert manager.status().redacted >= 1


@pytest.mark.parametrize(
    "way", sorted(EXITS.keys() - {"on_session_switch"})
)  # a reason is the host's own word
def test_no_recall_of_before_is_written_back_by_any_member(way: str) -> None:
    """A block of recalled text that stands in what was said or done is not handed over as something new."""
    provider = Noting()
    manager = started(provider)
    EXITS[way](manager, f"before\n{build_memory_context_block(RECALLED)}\nafter")
    assert manager.flush_pending(10)
    manager.shutdown_all()
    assert len(provider.seen) > 2, "the provider was told nothing"
    told = json.dumps(provider.seen, default=str)
    assert "before" in told
    assert "after" in told
    assert RECALLED not in told
