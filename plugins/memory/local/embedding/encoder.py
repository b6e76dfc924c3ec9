"""What turns texts into vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Array = Any
"""A numpy array; numpy has no part in type checks, as it need not be installed."""

LATIN = "latin"
_LETTERS = re.compile(r"[^\W\d_]")
_OTHER_LETTERS = re.compile("[^\\W\\d_\u0000-\u024f\u1e00-\u1eff]")
OTHER_SHARE = 0.3
"""A text with more than this share of other letters is none for a model that reads Latin script only."""


class Said(NamedTuple):
    """A text to encode, and what was said just before it, which tells what "it" and "there" are."""

    text: str
    before: str = ""


class Encoded(NamedTuple):
    """A text as a vector of length 1, and, from a model that gives them, one such vector for each token of it.

    *words* are the places in the text where each token's word begins, -1 for a token that stands for none.
    """

    whole: Array
    tokens: Array | None = None
    words: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a model. *name* changes with everything that would change a vector."""

    name: str
    width: int
    has_tokens: bool = False
    script: str = ""

    def reads(self, text: str) -> bool:
        """Whether the model knows the script that *text* is mostly written in."""
        if self.script != LATIN or text.isascii():
            return True
        letters = len(_LETTERS.findall(text))
        return len(_OTHER_LETTERS.findall(text)) <= OTHER_SHARE * letters if letters else True


class Encoder(Protocol):
    """A model at work. Its methods may be called from any thread; they raise ModelUnavailable."""

    @property
    def traits(self) -> Traits:
        """What is known of the model."""

    @property
    def calibration_file(self) -> Path | None:
        """Where what is found out about the model may be kept."""

    def encode(self, said: Sequence[Said]) -> list[Encoded]:
        """The vectors of stored texts, in that order."""

    def encode_question(self, asked: str) -> Encoded:
        """The vectors of a question."""

    def vocabulary(self) -> Sequence[str]:
        """The tokens of the model, always in the same order; empty where they are not known."""
