"""Memory through other agents: a recall over the protocol beside the provider's own, server start, a hook.

    python benchmarks/clients.py [--turns 100000] [--questions 200] [--runs 11] [--json]

A recall goes through the official client over HTTP on this machine's loopback, and over standard input and
output. The provider's own time is that of the same questions asked of it in this process, over the same file,
in the same run: the difference is what everything between a client and the provider takes, in wall time.
Starts are CPU times of processes, user and system, interleaved; ``python -c pass`` stands beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from hermes.plugins.memory.local.provider import LocalMemoryProvider

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}) + "\n"


def environment(home: Path) -> dict[str, str]:
    """What every process is started with."""
    return {"HERMES_HOME": str(home), "HOME": str(home), "PYTHONSAFEPATH": "1", "PATH": os.defpath}


def fill(home: Path, count: int, questions: int) -> list[str]:
    """Store *count* turns; questions about some of them."""
    sys.path.append(str(Path(__file__).parent))
    from scale import BATCH, Text, turns

    provider = LocalMemoryProvider()
    provider.initialize("fill", hermes_home=str(home), platform="cli")
    text, batch, asked = Text(), [], []
    for number, turn in enumerate(turns(text, count)):
        batch.append(turn)
        if number % max(1, count // questions) == 0:
            asked.append(Text(number).question(turn["user_content"]))
        if len(batch) == BATCH:
            provider.sync_turns(batch)
            batch = []
    if batch:
        provider.sync_turns(batch)
    provider.shutdown()
    return asked


def median_ms(seconds: Sequence[float]) -> float:
    """The middle of *seconds*, in milliseconds."""
    return statistics.median(seconds) * 1000


def of_provider(home: Path, questions: Sequence[str]) -> list[float]:
    """Wall time of each question, asked of the provider itself."""
    provider = LocalMemoryProvider()
    provider.initialize("own", hermes_home=str(home), platform="mcp")
    took = []
    for question in questions:
        began = time.perf_counter()
        provider.prefetch(question)
        took.append(time.perf_counter() - began)
    provider.shutdown()
    return took


async def _asked(client: Any, questions: Sequence[str]) -> list[float]:
    took = []
    for question in questions:
        began = time.perf_counter()
        result = await client.call_tool("recall", {"query": question})
        took.append(time.perf_counter() - began)
        assert not result.is_error, result.content
    return took


async def over_stdio(home: Path, questions: Sequence[str]) -> list[float]:
    """Wall time of each question over standard input and output."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "hermes", "mcp", "serve"], env=environment(home)
    )
    async with Client(command) as client:
        return await _asked(client, questions)


@contextlib.contextmanager
def serving(home: Path) -> Iterator[str]:
    """The address of a server over HTTP."""
    words = ["-m", "hermes", "mcp", "serve", "--http", "--port", "0", "--json"]
    process = subprocess.Popen(
        [sys.executable, *words], env=environment(home), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


async def over_http(home: Path, address: str, questions: Sequence[str]) -> list[float]:
    """Wall time of each question over HTTP."""
    token = (home / "mcp-token").read_text().strip()
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        return await _asked(client, questions)


def cpu(command: Sequence[str], home: Path, given: str) -> float:
    """CPU milliseconds of *command* with *given* on its standard input."""
    process = subprocess.Popen(
        command,
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(given.encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return (usage.ru_utime + usage.ru_stime) * 1000


def starts(home: Path, runs: int) -> dict[str, float]:
    """Median CPU milliseconds of each process."""
    python, hermes = [sys.executable], [sys.executable, "-m", "hermes"]
    hook = [*hermes, "--home", str(home), "--profile", "default", "hooks", "run"]  # as it is installed
    session = {"session_id": "bench", "prompt_id": "p"}
    prompt = json.dumps({**session, "prompt": "Where is the kiln of the pottery?"})
    stop = json.dumps({**session, "last_assistant_message": "In Hall B."})
    rows: dict[str, tuple[list[str], str]] = {
        "python -c pass": ([*python, "-c", "pass"], ""),
        "import mcp and its server": (
            [
                *python,
                "-c",
                "import anyio, uvicorn, mcp.server.lowlevel, mcp.server.stdio, mcp.server.auth.settings",
            ],
            "",
        ),
        "hermes mcp serve, one greeting": ([*hermes, "mcp", "serve"], INITIALIZE),
        "hermes hooks run UserPromptSubmit": ([*hook, "UserPromptSubmit"], prompt),
        "hermes hooks run Stop": ([*hook, "Stop"], stop),
    }
    took: dict[str, list[float]] = {name: [] for name in rows}
    for number in range(runs + 1):
        for name, (command, given) in rows.items():
            spent = cpu(command, home, given)
            if number:  # the first run is for the caches
                took[name].append(spent)
    return {name: statistics.median(values) for name, values in took.items()}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hermes-clients-") as folder:
        home = Path(folder) / "home"
        questions = fill(home, given.turns, given.questions)
        of_provider(home, questions[:20])  # the pages of the file
        own = of_provider(home, questions)
        stdio = anyio.run(over_stdio, home, questions)
        with serving(home) as address:
            http = anyio.run(over_http, home, address, questions)
        processes = starts(home, given.runs)
    result = {
        "turns": given.turns,
        "recall_ms": {"provider": median_ms(own), "stdio": median_ms(stdio), "http": median_ms(http)},
        "beyond_ms": {
            "stdio": statistics.median(a - b for a, b in zip(stdio, own, strict=True)) * 1000,
            "http": statistics.median(a - b for a, b in zip(http, own, strict=True)) * 1000,
        },
        "cpu_ms": processes,
    }
    print(json.dumps(result, indent=2) if given.json else report(result))
    return 0


def report(result: dict[str, Any]) -> str:
    """The figures as a person reads them."""
    recall, beyond = result["recall_ms"], result["beyond_ms"]
    lines = [f"a recall among {result['turns']:,} turns, wall ms, p50"]
    lines.append(f"  {'of the provider itself':<36}{recall['provider']:8.1f}")
    lines += [
        f"  over {way:<31}{recall[way]:8.1f}   beyond it {beyond[way]:6.1f}" for way in ("stdio", "http")
    ]
    base = result["cpu_ms"]["python -c pass"]
    lines.append("processes, CPU ms, median, and as a multiple of python -c pass")
    lines += [f"  {name:<36}{ms:8.1f}{ms / base:8.1f}x" for name, ms in result["cpu_ms"].items()]
    share = result["cpu_ms"]["hermes mcp serve, one greeting"] - result["cpu_ms"]["import mcp and its server"]
    lines.append(f"  {'of the server, our own share':<36}{share:8.1f}{share / base:8.1f}x")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
