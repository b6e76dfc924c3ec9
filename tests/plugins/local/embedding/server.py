"""An embeddings endpoint on this machine, over real HTTP: words that mean the same have the same part in a vector."""

from __future__ import annotations

import json
import math
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WIDTH = 96
MEANINGS = {"pet": "cat", "animal": "cat", "automobile": "car", "vehicle": "car", "purchased": "bought"}


class Endpoint(ThreadingHTTPServer):
    """Counts what it is asked, keeps what it was told, and fails while *failing* is set."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.texts: list[str] = []
        self.keys: list[str | None] = []
        self.failing = 0
        self.shift = 0
        """Which model it is: another number gives other vectors."""
        self.width = WIDTH

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A running endpoint."""
    server = Endpoint()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vector(text: str, model: str, width: int = WIDTH) -> list[float]:
    """The sum of one vector for each word."""
    total = [0.0] * width
    for word in text.lower().replace("?", "").replace(".", "").split():
        chance = random.Random(f"{model} {MEANINGS.get(word, word)}")
        for i in range(width):
            total[i] += chance.gauss(0, 1)
    length = math.sqrt(sum(x * x for x in total)) or 1.0
    return [x / length for x in total]


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers["Authorization"])
        if self.server.failing:
            self._reply(self.server.failing, {"error": {"message": "not now"}})
            return
        self.server.texts += given["input"]
        data = [
            {"index": i, "embedding": vector(text, given["model"], self.server.width)}
            for i, text in enumerate(given["input"])
        ]
        self._reply(200, {"data": data[::-1]})  # in any order: the index says which is which

    def _reply(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""
