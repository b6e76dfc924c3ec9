"""What is found out once about a model, without a word of anybody's: where its vectors lie, and what tells
tokens apart.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

import numpy as np

from hermes.errors import HermesError
from hermes.files import write_atomic
from hermes.plugins.memory.local.embedding.encoder import Array, Encoder, Said

log = logging.getLogger(__name__)

CODE_BITS = 64
"""Bits that stand for a token."""
OFF_CENTRE = 0.5
"""A model whose vectors all point one way by more than this has them compared from where they lie."""
RELATED = 0.35
"""How far from unrelated to the same a text must be to be offered unasked."""
_LINES, _WORDS = 200, 24
_SENTENCES = """
The ferry to the island leaves twice a day in summer.
She repaired the kitchen tap with a new washer.
Interest rates rose for the third month in a row.
My cat refuses to eat anything but tuna.
The function returns an empty list when no file is found.
Snow closed the mountain pass before the weekend.
He has played the cello since he was seven.
The museum bought two paintings at the auction.
Please remind me to water the tomatoes tomorrow.
The train was late because of a broken signal.
Our team lost the final by a single point.
The recipe needs a cup of flour and three eggs.
The judge postponed the hearing until spring.
I am allergic to peanuts and to wasp stings.
The spacecraft entered orbit around the moon on Tuesday.
Their daughter starts school in September.
The server restarts itself after every update.
We painted the bedroom light green.
The novel tells of a fisherman and his brother.
Battery life is better with the screen turned down.
The doctor told her to rest for two weeks.
A flock of geese settled on the lake.
The contract ends in December unless it is renewed.
He forgot his umbrella in the taxi again.
""".strip().splitlines()


@dataclass(frozen=True, slots=True)
class Calibration:
    """*centre* of the vectors, zero where they lie all around; *related*: the cosine from which texts have to
    do with one another; *middle* and *axes* make a token's vector into ``CODE_BITS`` numbers.
    """

    centre: Array
    related: float
    middle: Array | None = None
    axes: Array | None = None

    def to_bytes(self) -> bytes:
        """For the store."""
        tokens = [] if self.axes is None else [self.middle, self.axes.ravel()]
        numbers = np.concatenate([[self.related], self.centre, *tokens])
        return bytes(numbers.astype("<f4"))

    @classmethod
    def from_bytes(cls, blob: bytes, width: int) -> Calibration:
        """What ``to_bytes`` made of one, for vectors of *width*."""
        numbers = np.frombuffer(blob, "<f4").astype(np.float32)
        centre, rest = numbers[1 : width + 1], numbers[width + 1 :]
        if not len(rest):
            return cls(centre, float(numbers[0]))
        return cls(centre, float(numbers[0]), rest[:width], rest[width:].reshape(width, CODE_BITS))


def calibrate(encoder: Encoder) -> Calibration:
    """Find it out, the same at every run, or read what was found out before. Raises ModelUnavailable."""
    kept, width = encoder.calibration_file, encoder.traits.width
    try:
        if kept is not None and (known := kept.read_bytes()):
            return Calibration.from_bytes(known, width)
    except OSError:
        pass  # never written, or not for us: it is found out again
    found = _find_out(encoder)
    if kept is not None:
        try:
            write_atomic(kept, found.to_bytes())
        except (OSError, HermesError) as exc:
            log.info("%s is not kept: %s", kept, exc)
    return found


def _find_out(encoder: Encoder) -> Calibration:
    sentences = np.stack([e.whole for e in encoder.encode([Said(line) for line in _SENTENCES])])
    mean = sentences.mean(0)
    alike = sentences @ sentences.T
    unrelated = float(alike[~np.eye(len(alike), dtype=bool)].mean())
    related = unrelated + RELATED * (1 - unrelated)
    centre = mean if np.linalg.norm(mean) > OFF_CENTRE else np.zeros_like(mean)
    if not encoder.traits.has_tokens or encoder.traits.width < CODE_BITS:
        return Calibration(centre, related)
    return Calibration(centre, related, *_axes(encoder))


def _axes(encoder: Encoder) -> tuple[Array, Array]:
    """The directions in which tokens differ most: words of the model's own vocabulary, in any order."""
    words = [word for word in encoder.vocabulary() if len(word) > 2 and word.isalpha()] or _SENTENCES
    chance = random.Random(5)  # noqa: S311 - the same at every run is what is wanted
    lines = [" ".join(chance.choices(words, k=_WORDS)) for _ in range(_LINES)]
    found = [e.tokens for e in encoder.encode([Said(line) for line in lines]) if e.tokens is not None]
    tokens = np.concatenate(found)
    middle = tokens.mean(0)
    spread = (tokens - middle).T @ (tokens - middle)
    _, directions = np.linalg.eigh(spread)  # the largest last
    return middle, directions[:, : -CODE_BITS - 1 : -1]
