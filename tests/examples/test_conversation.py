"""The example conversation is what the README and the demonstration say it is."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hermes.memory.conversations import Said, read, turns

FILE = Path(__file__).resolve().parent.parent.parent / "examples" / "conversation.jsonl"


def test_conversation_is_read_whole() -> None:
    """Every line is understood: sixty turns in six sessions, in the order of their times."""
    with FILE.open(encoding="utf-8") as stream:
        messages = list(read(stream, FILE.name))
    said = [message for message in messages if isinstance(message, Said)]
    assert len(said) == len(messages)
    found = list(turns(said))
    assert len(found) == 60
    assert len({turn.session_id for turn in found}) == 6
    times = [turn.time or 0.0 for turn in found]
    assert all(earlier < later for earlier, later in pairwise(times))


def test_conversation_corrects_itself() -> None:
    """What the demonstration asks for is said, and only after something else had been said before."""
    text = FILE.read_text(encoding="utf-8")
    for before, after in (
        ("on 14 May", "23 April at 08:30"),
        ("`pve-02`", "`cellar-host`"),
        ("13 °C", "11.5 °C"),
    ):
        assert 0 < text.index(before) < text.index(after)
