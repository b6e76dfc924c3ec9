"""Whatever an engine does, the conversation goes on."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.context.compaction import Compaction
from hermes.context.engine import ContextEngine
from hermes.errors import ModelUnavailable

LONG = [
    {"role": role, "content": f"{role} says {n} " + "word " * 50}
    for n in range(10)
    for role in ("user", "assistant")
]


class Engine(ContextEngine):
    """Does what it is made with."""

    name = "made"

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.given: dict[str, Any] = {}

    def update_from_response(self, usage: Any) -> None:
        """Fails."""
        raise RuntimeError("cannot count")

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        """Above 100."""
        return bool(prompt_tokens and prompt_tokens > 100)

    def compress(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        """The outcome."""
        self.given = kwargs
        messages[0]["content"] = "changed by the engine"
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        pytest.param(RuntimeError("broken"), "RuntimeError: broken", id="raises"),
        pytest.param(ModelUnavailable("the model is away"), "the model is away", id="no model"),
        pytest.param(None, "no list", id="nothing"),
        pytest.param([], "the person said", id="empty"),
        pytest.param([{"role": "tool", "tool_call_id": "x"}], "not there", id="torn"),
        pytest.param([*LONG, *LONG], "shorter", id="longer"),
    ],
)
def test_a_compression_that_fails_leaves_everything_as_it_was(outcome: Any, reason: str) -> None:
    """The messages come back untouched, with the reason."""
    before = [dict(message) for message in LONG]
    done = Compaction(Engine(outcome), lambda _: "").run(LONG)
    assert (done.done, done.messages) == (False, before)
    assert reason in done.reason


def test_an_engine_is_given_what_it_needs() -> None:
    """Tokens, focus, force and what the memory wants kept reach the engine; the result is used."""
    short = [{"role": "user", "content": "all of it, in short"}]
    engine = Engine(short)
    done = Compaction(engine, lambda messages: f"memory of {len(messages)}").run(
        LONG, tokens=5, focus="ships", force=True
    )
    assert (done.done, done.messages) == (True, short)
    assert done.after < done.before
    assert engine.given == {
        "current_tokens": 5,
        "focus_topic": "ships",
        "force": True,
        "memory_context": "memory of 20",
    }


def test_a_hook_that_raises_is_counted() -> None:
    """An engine that raises elsewhere stops nothing either."""
    compaction = Compaction(Engine([]), lambda _: "")
    compaction.tell("update_from_response", {})
    assert compaction.failures == 1
    assert compaction.is_due(LONG, 101)
    assert not compaction.is_due(LONG, 99)


def test_only_tools_that_the_engine_offers_are_run() -> None:
    """An unknown tool, or one that fails, is an error in JSON."""

    class WithTool(Engine):
        def get_tool_schemas(self) -> Any:
            return [{"name": "look"}, {"name": "fail"}]

        def handle_tool_call(self, name: str, args: Any, **kwargs: Any) -> Any:
            return '{"ok": true}' if name == "look" else 5

    compaction = Compaction(WithTool([]), lambda _: "")
    assert compaction.run_tool("look", {}) == '{"ok": true}'
    assert "error" in compaction.run_tool("fail", {})
    assert "error" in compaction.run_tool("other", {})
