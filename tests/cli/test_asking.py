"""What is typed at a question."""

from __future__ import annotations

import pytest

from hermes.cli.asking import cleaned


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sk-1 a#b'\"ü", "sk-1 a#b'\"ü"),
        ("\x1b[200~sk-1\x1b[201~", "sk-1"),
        ("sk\x1b[D-\x1b[1;5C1", "sk-1"),
        ("\x1bOAsk-1\x1bOB", "sk-1"),
        ("\x1b]0;title\x07sk-1\x1b]8;;http://x\x1b\\", "sk-1"),
        ("sk-1\r\n\x00\x7f\x9b", "sk-1"),
    ],
)
def test_escape_sequences_are_no_part_of_an_answer(typed: str, meant: str) -> None:
    """Marks around a paste, arrow keys, titles and control characters go; everything that is text stays."""
    assert cleaned(typed) == meant
