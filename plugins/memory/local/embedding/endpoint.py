"""A model behind an OpenAI-compatible embeddings endpoint: ``POST {base_url}/embeddings``."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Sequence

import numpy as np

from hermes.errors import ModelUnavailable
from hermes.plugins.memory.local.embedding.encoder import Encoded, Said, Traits
from hermes.plugins.memory.local.embedding.onnx_model import unit

BATCH = 64
LONGEST = 8_000
"""Characters of a text that are sent."""
STORING_SECONDS, ASKING_SECONDS = 60.0, 2.0
_SEE = "see local.endpoint in the settings"


class EndpointEncoder:
    """See ``encoder.Encoder``. Gives no vectors of tokens. The first call asks how long the vectors are."""

    def __init__(self, base_url: str, model: str, key: str = "") -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ModelUnavailable(f"{base_url!r} is no address of an endpoint", next_step=_SEE)
        self._url = base_url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = key
        where = hashlib.sha256(self._url.encode()).hexdigest()[:16]
        (probe,) = self._ask(["length"], ASKING_SECONDS)
        self.traits = Traits(f"{model}@{where}", len(probe))
        self.calibration_file = None

    def encode(self, said: Sequence[Said]) -> list[Encoded]:
        """The vectors of stored texts."""
        found: list[Encoded] = []
        for start in range(0, len(said), BATCH):
            texts = [one.text for one in said[start : start + BATCH]]
            found += self._encoded(texts, STORING_SECONDS)
        return found

    def encode_question(self, asked: str) -> Encoded:
        """The vector of a question; it must come soon, as somebody waits."""
        return self._encoded([asked], ASKING_SECONDS)[0]

    def vocabulary(self) -> Sequence[str]:
        """Unknown."""
        return ()

    def _encoded(self, texts: Sequence[str], seconds: float) -> list[Encoded]:
        vectors = self._ask(texts, seconds)
        if any(len(vector) != self.traits.width for vector in vectors):
            raise ModelUnavailable(f"{self._url} gave vectors of other lengths than before", next_step=_SEE)
        return [Encoded(unit(np.asarray(vector, np.float32))) for vector in vectors]

    def _ask(self, texts: Sequence[str], seconds: float) -> list[list[float]]:
        body = json.dumps({"model": self._model, "input": [text[:LONGEST] for text in texts]}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "hermes"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - checked in __init__
        try:
            with urllib.request.urlopen(request, timeout=seconds) as reply:  # noqa: S310
                given = json.load(reply)
            found = sorted(given["data"], key=lambda item: item.get("index", 0))
            vectors = [[float(x) for x in item["embedding"]] for item in found]
        except urllib.error.HTTPError as exc:
            with exc:
                raise ModelUnavailable(
                    f"{self._url}: HTTP {exc.code}", status=exc.code, next_step=_SEE
                ) from exc
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
            raise ModelUnavailable(f"{self._url}: {exc}", next_step=_SEE) from exc
        if len(vectors) != len(texts) or not all(vectors):
            raise ModelUnavailable(
                f"{self._url} gave {len(vectors)} vectors for {len(texts)} texts", next_step=_SEE
            )
        return vectors
