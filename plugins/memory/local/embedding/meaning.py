"""Finding by meaning, as a search uses it: what a question's vectors are, and of which model."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import HermesError
from hermes.plugins.memory.local.embedding.background import TRY_AGAIN_SECONDS, Embedder
from hermes.plugins.memory.local.embedding.encoder import Encoded, Encoder
from hermes.plugins.memory.local.embedding.late import Tokens
from hermes.plugins.memory.local.embedding.vectors import SqliteVectors
from hermes.plugins.memory.local.records import Embedding, Vectors

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in the vectors of the model *model*; see ``recall.AskedMeaning``."""

    text: str
    model: str
    encoded: Encoded
    by_tokens: bool

    def nearest(self, vectors: Vectors, limit: int) -> dict[int, float]:
        """The *limit* messages that are nearest to it, with their cosine."""
        return vectors.nearest(self.encoded.whole, limit)

    def closeness(self, vectors: Vectors, messages: list[int]) -> dict[int, float]:
        """The cosines of *messages*."""
        return vectors.closeness(self.encoded.whole, messages)

    def compare(
        self, vectors: Vectors, messages: list[int], weights: Mapping[str, float]
    ) -> dict[int, float]:
        """How near *messages* are token by token; nothing where tokens are not compared."""
        calibration = vectors.calibration
        if not self.by_tokens or self.encoded.tokens is None or calibration.axes is None:
            return {}
        around = sorted({m + step for m in messages for step in (-1, 0, 1)})
        return Tokens(self.text, self.encoded, calibration, weights).compare(messages, vectors.tokens(around))


class Meaning:
    """The model of a profile. *open_encoder* loads a model by the description that is kept with its vectors."""

    def __init__(
        self,
        vectors: SqliteVectors,
        source: str,
        open_encoder: Callable[[str], Encoder],
        lock: Path,
        *,
        by_tokens: bool,
    ) -> None:
        self._vectors = vectors
        self._source = source
        self._open = open_encoder
        self._by_tokens = by_tokens
        self._lock = threading.Lock()
        self._encoders: dict[str, Encoder] = {}
        self._failed: dict[str, tuple[float, HermesError]] = {}
        self.embedder = Embedder(vectors, lambda: self._encoder(source), source, lock)

    def ask(self, asked: str) -> Asked | None:
        """*asked* in vectors; None if the model cannot read or cannot be reached: words must do then."""
        if self._fails_now(self._source):
            return None
        try:
            encoder = self._serving()
            if not encoder.traits.reads(asked):
                return None
            encoded = encoder.encode_question(asked)
        except HermesError as exc:
            if self._source not in self._failed:
                log.warning("searching by words alone for now: %s", exc.message)
            self._failed[self._source] = time.monotonic(), exc
            return None
        self._failed.pop(self._source, None)
        return Asked(asked, encoder.traits.name, encoded, self._by_tokens)

    def progress(self) -> Embedding:
        """How far the texts are embedded, how fast, and what is wrong."""
        name = next((m.name for m in self._vectors.models() if m.source == self._source), "")
        found = self._vectors.progress(name)
        problem = self.embedder.problem
        if not problem and (failed := self._failed.get(self._source)):
            problem = failed[1].message
        return Embedding(found.done, found.waiting, self.embedder.rate, problem)

    def use(self, encoder: Encoder) -> None:
        """Take *encoder* for the model of this profile, instead of loading it."""
        self._encoders[self._source] = encoder

    @property
    def label(self) -> str:
        """Which model it is, for people."""
        described = json.loads(self._source)
        return str(described.get("folder") or f"{described['model']} at {described['endpoint']}")

    def close(self) -> None:
        """Stop embedding."""
        self.embedder.stop()

    def _serving(self) -> Encoder:
        """The model whose vectors are searched: a former one until the wanted one has come to the end."""
        models = self._vectors.models()
        former = [model for model in models if model.source != self._source and model.complete]
        if former and not any(model.source == self._source and model.complete for model in models):
            try:
                return self._encoder(former[0].source)
            except HermesError as exc:
                log.info("the former model is gone: %s", exc.message)
        return self._encoder(self._source)

    def _encoder(self, source: str) -> Encoder:
        with self._lock:
            if source in self._encoders:
                return self._encoders[source]
            if failed := self._fails_now(source):
                raise failed
            try:
                encoder = self._encoders[source] = self._open(source)
            except HermesError as exc:
                self._failed[source] = time.monotonic(), exc
                raise
            return encoder

    def _fails_now(self, source: str) -> HermesError | None:
        """What went wrong a short while ago: it is not tried again for each question."""
        failed = self._failed.get(source)
        return failed[1] if failed and time.monotonic() - failed[0] < TRY_AGAIN_SECONDS else None
