"""Embedding what was stored, beside whatever else goes on: one process of a profile at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from hermes.errors import HermesError, ModelUnavailable
from hermes.plugins.memory.local.embedding.calibration import calibrate
from hermes.plugins.memory.local.embedding.encoder import Encoded, Encoder, Said
from hermes.plugins.memory.local.embedding.vectors import Pending, SqliteVectors

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Messages between two commits."""
TRY_AGAIN_SECONDS = 60.0
"""After a failure."""
OTHER_SECONDS = 2.0
"""How soon to look again where another process is at work."""
IDLE_SECONDS = 5.0
"""How soon to look again where nothing was left to do: other processes store and forget, too."""


class Embedder:
    """Brings the vectors of a store up to date. *lock* is the file that keeps other processes from doing the same."""

    def __init__(
        self, vectors: SqliteVectors, encoder: Callable[[], Encoder], source: str, lock: Path
    ) -> None:
        self._vectors = vectors
        self._encoder = encoder
        self._source = source
        self._lock = FileLock(lock, mode=0o600)
        self._awake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pace: deque[tuple[float, int]] = deque(maxlen=64)
        self.problem = ""

    def start(self) -> None:
        """Begin in a thread of its own."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="hermes-local-embedding", daemon=True)
            self._awake.set()
            self._thread.start()

    def wake(self) -> None:
        """Say that something was stored."""
        self._awake.set()

    def stop(self, seconds: float = 10.0) -> None:
        """End after what is in hand; the rest is done when the store is next open."""
        self._stop.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join(seconds)

    @property
    def rate(self) -> float:
        """Messages per second, lately; 0 while nothing is done."""
        pace = list(self._pace)
        if len(pace) < 2 or time.monotonic() - pace[-1][0] > OTHER_SECONDS * 5:
            return 0.0
        return sum(count for _, count in pace[1:]) / max(1e-3, pace[-1][0] - pace[0][0])

    def catch_up(self) -> bool:
        """Embed what lacks vectors; False where another process is at it. Raises ModelUnavailable, StoreUnavailable."""
        try:
            with self._lock.acquire(blocking=False):
                self._work()
        except Timeout:
            return False
        return True

    def _run(self) -> None:
        """Look after the vectors until the end; once at least, as most processes live for a moment only."""
        while True:
            self._awake.wait(IDLE_SECONDS)
            self._awake.clear()
            try:
                wait = 0.0 if self.catch_up() else OTHER_SECONDS
                self.problem = ""
            except HermesError as exc:
                if not self.problem:
                    log.warning("texts are not embedded for now: %s", exc.message)
                self.problem, wait = exc.message, TRY_AGAIN_SECONDS
            if self._stop.wait(wait):
                return
            if wait:
                self._awake.set()

    def _work(self) -> None:
        self._pace.clear()
        encoder = self._encoder()
        model = self._vectors.take_up(encoder.traits, self._source, lambda: calibrate(encoder))
        while pending := self._vectors.pending(model, encoder.traits, AT_ONCE):
            self._pace.append((time.monotonic(), 0))
            self._vectors.put(model, list(zip(pending, _encoded(encoder, pending), strict=True)))
            self._pace.append((time.monotonic(), len(pending)))
            if self._stop.is_set():
                return
        self._vectors.complete(model)


def _encoded(encoder: Encoder, pending: list[Pending]) -> list[list[Encoded]]:
    said: list[Said] = [part for message in pending for part in message.parts]
    vectors = iter(encoder.encode(said) if said else [])
    found = [[next(vectors) for _ in message.parts] for message in pending]
    if next(vectors, None) is not None:
        raise ModelUnavailable("the model gave more vectors than there were texts")
    return found
