"""Reading conversations: what is understood, what is told apart, and what is left out by name."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from hermes.memory.conversations import Malformed, ReadTurn, Said, read, turns

USER = {"role": "user", "content": "My cat is called Biscuit."}
ASSISTANT = {"role": "assistant", "content": "Noted: Biscuit."}


def said(text: str) -> list[Said]:
    """The messages of *text*, which has no malformed record."""
    found = list(read(io.StringIO(text), "f"))
    assert all(isinstance(one, Said) for one in found), found
    return [one for one in found if isinstance(one, Said)]


def read_turns(text: str) -> list[ReadTurn]:
    """The turns of *text*."""
    return list(turns(said(text)))


def lines(*records: Any) -> str:
    """JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    "text",
    [
        lines(USER, ASSISTANT),
        lines({"messages": [USER, ASSISTANT]}),
        json.dumps([USER, ASSISTANT]),
        json.dumps([USER, ASSISTANT], indent=2),
        json.dumps({"model": "m", "messages": [USER, ASSISTANT]}, indent=2),
        json.dumps([{"messages": [USER, ASSISTANT]}], indent=2),
        "\ufeff" + lines(USER, ASSISTANT),
        lines(USER, ASSISTANT).replace("\n", "\r\n") + "\n\n",
    ],
)
def test_every_form_gives_the_same_turn(text: str) -> None:
    """Lines of messages, lines of conversations and whole documents, pretty or not, all read alike."""
    (turn,) = read_turns(text)
    assert (turn.user, turn.assistant) == (USER["content"], ASSISTANT["content"])


def test_conversations_are_told_apart() -> None:
    """Messages with different conversation ids never share a turn."""
    text = lines(*({**USER, "conversation_id": name} for name in "ab"))
    assert [turn.session_id for turn in read_turns(text)] == ["a", "b"]


def test_a_conversation_without_id_is_known_by_its_first_message() -> None:
    """Two files that begin alike are the same conversation, others are not."""
    one, longer, other = (
        said(lines(USER)),
        said(lines(USER, ASSISTANT)),
        said(lines({**USER, "content": "Hello there."})),
    )
    assert one[0].conversation == longer[0].conversation != other[0].conversation
    assert one[0].key == longer[0].key


def test_equal_lines_have_their_own_identity() -> None:
    """The same words twice in one conversation are two messages."""
    keys = [m.key for m in said(lines(USER, ASSISTANT, USER, ASSISTANT))]
    assert len(set(keys)) == 4


def test_a_turn_ends_before_the_person_speaks_again() -> None:
    """Tool calls and their results belong to the turn of the question that led to them."""
    tool = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ]
    first, second = read_turns(lines(USER, *tool, ASSISTANT, USER))
    assert [m["role"] for m in first.messages] == ["user", "assistant", "tool", "assistant"]
    assert first.assistant == ASSISTANT["content"]
    assert (second.user, second.assistant) == (USER["content"], "")


def test_parts_and_images_are_kept_as_text() -> None:
    """A multimodal message keeps its text and says that there was an image."""
    parts = [
        {"type": "text", "text": "And the dog is Crumb."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]
    (turn,) = read_turns(lines({"role": "user", "content": parts}))
    assert "And the dog is Crumb." in turn.user
    assert "[image]" in turn.user
    assert "base64" not in turn.user


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000_000, 1_700_000_000.0),
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T22:13:20", 1_700_000_000.0),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000.0),
        ("last Tuesday", None),
        (True, None),
        (None, None),
    ],
)
def test_times(when: object, expected: float | None) -> None:
    """Unix seconds, milliseconds and ISO 8601 are understood; anything else is no time."""
    (turn,) = read_turns(lines({**USER, "timestamp": when}))
    assert turn.time == expected


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ('{"role": "user", "content": "cut of', "not JSON"),
        ("[1, 2", "not JSON"),
        ('"text"', "expected an object"),
        ("42", "expected an object"),
        ('{"text": "no role"}', "neither a message"),
        ('{"role": "narrator", "content": "x"}', "unknown role"),
        ('{"role": "user", "content": 5}', "content is int"),
        ('{"messages": [7]}', "expected a message"),
    ],
)
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_broken_record_is_named_and_the_others_are_read(bad: str, reason: str, place: str) -> None:
    """One record that cannot be used is told by file and line; every other one is taken."""
    good = [json.dumps({**USER, "content": str(n)}) for n in range(3)]
    at = {"first": 0, "middle": 1, "last": 3}[place]
    found = list(read(io.StringIO("\n".join([*good[:at], bad, *good[at:]])), "chat.jsonl"))
    assert [m.text for m in found if isinstance(m, Said)] == ["0", "1", "2"]
    (broken,) = [m for m in found if isinstance(m, Malformed)]
    assert broken.where.startswith(f"chat.jsonl:{at + 1}")
    assert reason in broken.reason


def test_a_document_that_is_cut_off_is_one_malformed_record() -> None:
    """A pretty-printed document without its end cannot be read, and that is said."""
    text = json.dumps([USER, ASSISTANT], indent=2)[:-20]
    (broken,) = read(io.StringIO(text), "chat.json")
    assert isinstance(broken, Malformed)
    assert "not JSON" in broken.reason


def test_system_messages_are_no_turns() -> None:
    """What the host told the model is not what anybody said."""
    assert [m.role for m in said(lines({"role": "system", "content": "Be brief."}, USER))] == ["user"]


def test_a_grown_turn_keeps_the_identities_of_its_beginning() -> None:
    """The identity of a question without an answer is among those of the question with its answer."""
    (short,), (long,) = read_turns(lines(USER)), read_turns(lines(USER, ASSISTANT))
    assert short.key in long.prefix_keys
    assert short.key != long.key
