"""Lists of messages: their length, and whether a model would take them."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.context.messages import estimated_tokens, fault_of, groups

USER = {"role": "user", "content": "look it up"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "a"}, {"id": "b"}]}
A = {"role": "tool", "tool_call_id": "a", "content": "1"}
B = {"role": "tool", "tool_call_id": "b", "content": "2"}
SAID = {"role": "assistant", "content": "there"}


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([USER, CALL, A, B, SAID], ""),
        ([USER, CALL, B, A], ""),
        ([USER, CALL, A], "missing"),
        ([USER, CALL, A, SAID], "message 4"),
        ([USER, A], "not there"),
        ([USER, CALL, A, A, B], "not there"),
        ([SAID], "the person said"),
        ([USER, {"role": "robot"}], "'robot'"),
        ([], "the person said"),
        (None, "no list"),
        (["text"], "no list"),
        ((USER,), "no list"),
    ],
)
def test_only_whole_conversations_are_sent(messages: Any, fault: str) -> None:
    """Every call has its results right behind it, and somebody asked something."""
    found = fault_of(messages)
    assert fault in found if fault else found == ""


def test_a_call_and_its_results_stay_together() -> None:
    """Pieces are cut between messages, never between a call of tools and what came of it."""
    assert groups([USER, CALL, A, B, SAID]) == [[USER], [CALL, A, B], [SAID]]


def test_length_is_estimated_in_every_script() -> None:
    """Four ASCII characters make a token, one of another script does; tool calls and parts count."""
    assert estimated_tokens([{"role": "user", "content": "a" * 400}]) == 104
    assert estimated_tokens([{"role": "user", "content": "猫" * 100}]) == 104
    parts = [{"type": "text", "text": "a" * 400}]
    assert estimated_tokens([{"role": "user", "content": parts}]) == 104
    assert estimated_tokens([{"role": "assistant", "content": None, "tool_calls": [{"id": "x" * 400}]}]) > 100
