"""The built-in engine: what it keeps word for word, what it summarises, and that the result is whole."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.context.messages import fault_of
from hermes.plugins.context_engine.compressor.compressor import (
    GOES_ON,
    MARK,
    MOST_IN_ALL,
    Compressor,
)

Message = dict[str, Any]


class Summariser:
    """Answers *text* and keeps what it was asked."""

    def __init__(self, text: str = "They agreed on blue.") -> None:
        self.text = text
        self.asked: list[list[Message]] = []

    def __call__(self, messages: list[Message]) -> str:
        """The text."""
        self.asked.append(messages)
        return self.text


def turn(n: int, *, tools: int = 0) -> list[Message]:
    """One turn, with so many rounds of tool calls."""
    rounds = []
    for r in range(tools):
        calls = [{"id": f"{n}.{r}", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
        rounds += [{"role": "assistant", "content": "", "tool_calls": calls}]
        rounds += [{"role": "tool", "tool_call_id": f"{n}.{r}", "content": f"result {n}.{r} " * 20}]
    return [
        {"role": "user", "content": f"question {n} " * 20},
        *rounds,
        {"role": "assistant", "content": f"answer {n} " * 20},
    ]


def test_beginning_and_end_stay_word_for_word() -> None:
    """The first turn and the last ones are there as they were; one summary stands between."""
    messages = [message for n in range(10) for message in turn(n)]
    summarise = Summariser()
    shorter = Compressor(summarise).compress(messages)
    assert shorter[:2] == messages[:2]
    assert shorter[-5:] == messages[-5:]
    assert shorter[2]["content"].startswith(f"{MARK}\nThey agreed on blue.\n\n{GOES_ON}\nquestion 7")
    assert len(shorter) == 8
    assert len(summarise.asked) == 1
    (task, text) = summarise.asked[0]
    assert "question 3" in text["content"]
    assert "question 9" not in text["content"]
    assert "data" in task["content"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=0, max_size=14), st.booleans())
def test_the_result_is_always_a_whole_conversation(rounds: list[int], again: bool) -> None:
    """Whatever tools were called, the result has no torn call, no two turns of the person in a row, and is stable."""
    messages = [message for n, tools in enumerate(rounds) for message in turn(n, tools=tools)]
    engine = Compressor(Summariser())
    shorter = engine.compress(messages)
    if again:
        shorter = engine.compress([*shorter, *turn(99), *turn(100), *turn(101), *turn(102)])
    if messages:
        assert fault_of(shorter) == ""
        roles = [message["role"] for message in shorter]
        assert not any(a == b == "user" for a, b in itertools.pairwise(roles))
        assert len(shorter) <= len(messages) + 8
        assert (engine.compression_count > 0) or again or not engine.has_content_to_compress(messages)


def test_a_single_endless_turn_can_be_compressed_too() -> None:
    """A conversation that is one question and a hundred tool calls has a middle."""
    messages = turn(0, tools=60)
    shorter = Compressor(Summariser()).compress(messages)
    assert fault_of(shorter) == ""
    assert len(shorter) < 14


def test_what_is_summarised_is_bounded_masked_and_without_fences() -> None:
    """Huge messages are cut visibly, secrets masked, recalled blocks taken out."""
    messages = [message for n in range(10) for message in turn(n)]
    messages[6] = {"role": "user", "content": "x" * 500_000 + " token sk-proj-abcdefghijklmnopqrstuvwx"}
    messages[8] = {"role": "user", "content": "ok <memory-context>old stuff</memory-context>"}
    summarise = Summariser()
    Compressor(summarise).compress(messages, memory_context="KEEP " * 5000, focus_topic="the colour")
    task, text = (message["content"] for message in summarise.asked[0])
    assert len(text) < MOST_IN_ALL
    assert "characters left out" in text
    assert "sk-proj" not in text
    assert "old stuff" not in text
    assert "the colour" in task


@pytest.mark.parametrize("text", ["", "   ", "<memory-context>x</memory-context>"])
def test_an_empty_summary_is_refused(text: str) -> None:
    """A model that says nothing must not erase the middle."""
    messages = [message for n in range(10) for message in turn(n)]
    with pytest.raises(ValueError, match="empty summary"):
        Compressor(Summariser(text)).compress(messages)


def test_the_threshold_follows_the_model() -> None:
    """Three quarters of the context; another model, another threshold; two engines share nothing."""
    one, other = Compressor(Summariser()), Compressor(Summariser())
    one.update_model("small", 1000)
    other.update_model("large", 100_000)
    assert (one.threshold_tokens, other.threshold_tokens) == (750, 75_000)
    one.update_from_response({"prompt_tokens": 800, "completion_tokens": 10})
    assert one.should_compress()
    assert not other.should_compress()
    assert one.last_total_tokens == 810
    assert one.should_compress_preflight([{"role": "user", "content": "x" * 4000}])
    one.on_session_reset()
    assert not one.should_compress()


def test_nothing_is_compressed_while_the_context_is_unknown() -> None:
    """Without a context length there is no threshold to pass."""
    assert not Compressor(Summariser()).should_compress(10**9)
