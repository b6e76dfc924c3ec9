"""What memory adds to a turn of a conversation, and what a one-shot answer costs until its first request.

The model is a server on loopback that answers at once, so what differs between the two conversations is the
memory: one has the provider ``local`` with many turns stored, the other none. Medians of one run.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hermes.containers import Hermes
from hermes.conversation import Conversation

WORDS = """harbour winter garden invoice server meeting bicycle recipe deadline violin passport engine lecture
mountain budget painting hospital contract orchard telescope""".split()  # noqa: SIM905 - easier to read
ONE_SHOT = 5


PROMPTS: list[int] = []
"""Characters of each request."""


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        """Answer at once."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        PROMPTS.append(sum(len(str(message["content"])) for message in request["messages"]))
        base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        choice = {"index": 0, "delta": {"content": "All right."}, "finish_reason": "stop"}
        body = f"data: {json.dumps({**base, 'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def fill(home: Path, turns: int) -> None:
    """Store so many turns in the profile's local memory."""
    from hermes.plugins.memory.local.provider import LocalMemoryProvider

    rng = random.Random(1)
    provider = LocalMemoryProvider()
    provider.initialize("filled", hermes_home=str(home), platform="cli")
    for start in range(0, turns, 1000):
        provider.sync_turns(
            {
                "user_content": " ".join(rng.choices(WORDS, k=8)) + f" {start + n}",
                "assistant_content": " ".join(rng.choices(WORDS, k=12)),
                "session_id": f"s{(start + n) // 40}",
                "idempotency_key": f"k{start + n}",
            }
            for n in range(min(1000, turns - start))
        )
    provider.shutdown()


def turn_ms(home: Path, base_url: str, provider: str, turns: int) -> tuple[float, float]:
    """Median and p99 of the wall time of one turn, in milliseconds; the first, which imports, left out."""
    settings = [f"model.base_url={base_url}", "model.name=m", f"memory.provider={provider}"]
    rng = random.Random(2)
    taken = []
    with Hermes(environ={"HERMES_HOME": str(home)}, settings=settings).open() as me:
        talk = Conversation(
            memory=me.memory_manager(),
            sessions=me.sessions(),
            model=me.model(),
            engine=me.context_engine(),
            nudge_every=0,
        )
        talk.start()
        for _ in range(turns):
            began = time.perf_counter()
            talk.say(f"What about the {' '.join(rng.choices(WORDS, k=3))}?")
            taken.append((time.perf_counter() - began) * 1000)
        talk.close()
    taken = sorted(taken[1:])
    return statistics.median(taken), taken[int(len(taken) * 0.99)]


def cpu_of(*args: str, env: dict[str, str]) -> float:
    """CPU seconds of one process, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=100_000, help="turns that are stored")
    parser.add_argument("--turns", type=int, default=200, help="turns that are measured")
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with tempfile.TemporaryDirectory() as folder:
        full, empty = Path(folder) / "full", Path(folder) / "empty"
        fill(full, given.stored)
        print(f"a turn, {given.stored:,} turns stored, ms (median, p99)")
        with_memory = turn_ms(full, url, "local", given.turns)
        prompts = statistics.mean(PROMPTS[-given.turns // 2 :])
        without = turn_ms(empty, url, "none", given.turns)
        added = (prompts - statistics.mean(PROMPTS[-given.turns // 2 :])) / 4
        print(f"  with local     {with_memory[0]:7.2f} {with_memory[1]:7.2f}")
        print(f"  without        {without[0]:7.2f} {without[1]:7.2f}")
        print(f"  memory adds    {with_memory[0] - without[0]:7.2f}   and about {added:,.0f} tokens")
        env = {
            "HERMES_HOME": str(empty),
            "HERMES__MODEL__BASE_URL": url,
            "HERMES__MODEL__NAME": "m",
            "PATH": "",
        }
        env["PYTHONSAFEPATH"] = "1"
        rounds = [
            (cpu_of("-m", "hermes", "chat", "hello", env=env), cpu_of("-c", "import openai, httpx2", env=env))
            for _ in range(ONE_SHOT)
        ]
        whole, library = (statistics.median(column) for column in zip(*rounds, strict=True))
        print("a one-shot answer, CPU ms (median)")
        figures = [round(seconds * 1000) for seconds in (whole, library, whole - library)]
        print("  all of it {}, importing the client library {}, ours {}".format(*figures))
    server.shutdown()


if __name__ == "__main__":
    main()
