"""Many processes write and recall in one profile at once: nothing is lost, and nobody is turned away."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local.provider import LocalMemoryProvider

PROCESS = """
import json, sys, time
from hermes.plugins.memory.local.provider import LocalMemoryProvider

home, kind, name, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
provider = LocalMemoryProvider()
provider.initialize(f"session-{name}", hermes_home=home, platform="cli")
print("ready", flush=True)
sys.stdin.readline()
took, done, end = [], 0, time.monotonic() + seconds
while time.monotonic() < end:
    start = time.monotonic()
    if kind == "write":
        provider.sync_turn(
            f"writer {name} says that box {done} holds apples", "Noted.", session_id=f"{name}-{done // 20}",
            idempotency_key=f"{name}-{done}",
        )
    else:
        provider.prefetch("which box holds apples?")
    took.append(time.monotonic() - start)
    done += 1
provider.shutdown()
took.sort()
print(json.dumps({"kind": kind, "name": name, "done": done, "p99": took[int(len(took) * 0.99)]}))
"""


def run(home: Path, writers: int, readers: int, seconds: float) -> list[dict[str, Any]]:
    """Let them all work at the same time; what each tells at its end. An error in any of them fails the test."""
    roles = [("write", str(i)) for i in range(writers)] + [("recall", str(i)) for i in range(readers)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(home), kind, name, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for kind, name in roles
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = []
    for process in processes:
        out, err = process.communicate(timeout=seconds + 120)
        assert (process.returncode, err) == (0, "")
        told.append(json.loads(out))
    return told


def check(home: Path, told: list[dict[str, Any]], open_local: Callable[..., LocalMemoryProvider]) -> None:
    """Every turn that was taken is there, once."""
    texts = [r["text"] for r in open_local().export_records() if r["role"] == "user"]
    expected = {
        f"writer {one['name']} says that box {i} holds apples"
        for one in told
        if one["kind"] == "write"
        for i in range(int(one["done"]))
    }
    assert len(texts) == len(expected)
    assert set(texts) == expected


def test_a_few_processes_at_once(home: Path, open_local: Callable[..., LocalMemoryProvider]) -> None:
    """Two write and two recall; all that was taken is stored."""
    check(home, run(home, 2, 2, 1.0), open_local)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_sixteen_processes_for_a_minute(home: Path, open_local: Callable[..., LocalMemoryProvider]) -> None:
    """Eight write and eight recall; nothing is lost, and 99 of 100 calls end long before a writer gives up."""
    told = run(home, 8, 8, 60.0)
    check(home, told, open_local)
    worst = {kind: max(one["p99"] for one in told if one["kind"] == kind) for kind in ("write", "recall")}
    print({**worst, "done": {kind: sum(o["done"] for o in told if o["kind"] == kind) for kind in worst}})
    assert worst["recall"] < 5
    assert worst["write"] < 10
