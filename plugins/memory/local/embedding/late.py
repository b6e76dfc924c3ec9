"""Comparing a question with a text token by token: each token of the question with the nearest of the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from hermes.plugins.memory.local import text
from hermes.plugins.memory.local.embedding.calibration import CODE_BITS, Calibration
from hermes.plugins.memory.local.embedding.encoder import Array, Encoded

BESIDE = 0.7
"""What a token right before or after the message counts: an answer stands beside its question."""
_WORD = re.compile(r"\w+")


class Tokens:
    """The telling tokens of a question; *weights*, by term, say how much each tells."""

    def __init__(
        self, asked: str, encoded: Encoded, calibration: Calibration, weights: Mapping[str, float]
    ) -> None:
        told = _tokens_tell(asked, encoded.words, weights)
        kept = np.flatnonzero(told) if told.any() else np.arange(len(told))
        told = told[kept] if told.any() else np.ones(len(kept), np.float32)
        vectors = (encoded.tokens[kept] - calibration.middle) @ calibration.axes  # type: ignore[index]
        self._vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        self._told = told / max(1e-9, float(told.sum()))

    def compare(self, messages: Sequence[int], codes: Mapping[int, bytes]) -> dict[int, float]:
        """How near each of *messages* that has *codes* is, its neighbours' words counted in part."""
        best = self._best(codes)
        found: dict[int, float] = {}
        for message in messages:
            if message not in best:
                continue
            nearest = best[message]
            for beside in (message - 1, message + 1):
                if beside in best:
                    nearest = np.maximum(nearest, BESIDE * best[beside])
            found[message] = float(nearest @ self._told)
        return found

    def _best(self, codes: Mapping[int, bytes]) -> dict[int, Array]:
        """For each message, how near its nearest token is to each of the question's."""
        if not codes or not len(self._vectors):
            return {}
        sides = np.unpackbits(
            np.frombuffer(b"".join(codes.values()), np.uint8).reshape(-1, CODE_BITS // 8), axis=1
        )
        near = (sides.astype(np.float32) @ (2 * self._vectors.T) - self._vectors.sum(1)) / CODE_BITS**0.5
        lengths = [len(blob) * 8 // CODE_BITS for blob in codes.values()]
        starts = np.cumsum([0, *lengths[:-1]])
        return dict(zip(codes, np.maximum.reduceat(near, starts, axis=0), strict=True))


def _tokens_tell(asked: str, words: Sequence[int], weights: Mapping[str, float]) -> Array:
    """For each token how much the word that it is part of tells; nothing for function words."""
    told = np.zeros(len(words), np.float32)
    for match in _WORD.finditer(asked):
        tells = max((weights.get(term, 0.0) for term in text.terms(match.group()).split()), default=0.0)
        for i, place in enumerate(words):
            if match.start() <= place < match.end():
                told[i] = tells
    return told
