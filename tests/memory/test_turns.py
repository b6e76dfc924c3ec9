"""A turn is handed over as plain text and JSON, in the person's own words, sharing nothing."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from hermes.memory.fences import build_memory_context_block
from hermes.memory.turns import (
    clean_messages,
    clean_text,
    detached,
    flatten_content,
    own_words,
    plain,
    scrubbed,
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("text", "text"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        (
            [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:…"}}],
            "look\n[image]",
        ),
        ([{"type": "image", "source": {}}], "[image]"),
        ([{"type": "input_audio", "input_audio": {}}], "[input_audio]"),
        (["a", {"type": "text", "text": ""}, None, {}], "a"),
        ({"type": "text", "text": "a"}, "a"),
        (17, "17"),
    ],
)
def test_content_is_flattened(content: Any, expected: str) -> None:
    """Text parts become lines, other parts are named."""
    assert flatten_content(content) == expected


HEADER = '[IMPORTANT: The user has invoked the "review" skill, indicating they want you to follow its instructions.]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("just words", "just words"),
        (f"{HEADER}\n\n# Review\nsteps", "/review"),
        (
            (
                f"{HEADER}\n\n# Review\nsteps\n\nThe user has provided the following instruction alongside the "
                "skill command: look at main.py\n\n[Runtime note: 3 files]"
            ),
            "look at main.py",
        ),
        ('<skill name="review">\nsteps\n</skill>\nlook at main.py', "look at main.py"),
        ('<skill name="a">1</skill><skill name="b">2</skill>', "/a /b"),
        ("they said: <skill name='x'>y</skill>", "they said: <skill name='x'>y</skill>"),
    ],
)
def test_skill_scaffolding_is_reduced(text: str, expected: str) -> None:
    """Of an expanded skill, what the person wrote is kept."""
    assert own_words(text) == expected


def test_recall_is_taken_out_of_a_turn() -> None:
    """Recall that a host appended or a model repeated does not come back as a new fact."""
    block = build_memory_context_block("likes tea")
    assert clean_text(f"what do I like?\n\n{block}") == "what do I like?"
    messages = [
        {"role": "assistant", "content": f"{block}\nTea.", "tool_calls": [{"function": {"arguments": block}}]}
    ]
    assert "likes tea" not in json.dumps(clean_messages(messages))
    assert scrubbed({"a": [f"x {block}"]}) == {"a": ["x "]}


def test_messages_are_copies_of_plain_json() -> None:
    """What is no JSON becomes text, bytes become their size, images do not fill a store."""
    picture = "data:image/png;base64," + "A" * 5000
    inner = {"n": float("inf"), "b": b"12345", "o": ValueError("x"), "t": (1, 2), "p": picture}
    (message,) = clean_messages([{"role": "user", "content": [inner]}])
    content = message["content"][0]
    assert content["n"] == "inf"
    assert content["b"] == "[5 bytes]"
    assert content["o"] == "x"
    assert content["t"] == [1, 2]
    assert len(content["p"]) < 100
    json.dumps(message, allow_nan=False)
    assert clean_messages("nonsense") == []
    assert clean_messages([None, {"role": "user", "content": "a"}]) == [{"role": "user", "content": "a"}]


def test_endless_nesting_ends() -> None:
    """A list that holds itself is cut off."""
    loop: list[Any] = []
    loop.append(loop)
    assert "…" in json.dumps(plain(loop), ensure_ascii=False)
    copied = detached(loop)
    assert copied[0] is copied
    assert copied is not loop


def test_detached_copies_containers_only() -> None:
    """Dicts and lists are copied all the way down, other objects passed on."""

    class Pair(NamedTuple):
        one: Any
        two: Any

    marker = object()
    given = {"list": [1, {"marker": marker}], "pair": Pair([1], 2), "set": {1}}
    copied = detached(given)
    assert copied == given
    assert copied["list"] is not given["list"]
    assert copied["list"][1]["marker"] is marker
    assert isinstance(copied["pair"], Pair)
