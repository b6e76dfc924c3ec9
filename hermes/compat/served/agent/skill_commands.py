"""What a person said, in a message that a skill was put into."""

from __future__ import annotations

from typing import Any

from hermes.memory.turns import flatten_content, own_words


def extract_user_instruction_from_skill_message(content: Any) -> str | None:
    """The person's own words in *content*; None where a skill was put in and nothing was said with it."""
    text = flatten_content(content)
    words = own_words(text)
    nothing_said = words != text and all(word.startswith("/") for word in words.split())
    return None if nothing_said else words
