"""How fast the ``memory`` tool writes, beside what the disk can do at all.

Each write is on disk when it is answered, so it is compared with the least that takes: write, fsync, rename
of a file of the same size, in the same run, on the same disk. The two are measured in turns.

    python benchmarks/builtin.py [--seconds 0.7] [--rounds 3] [--folder PATH]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hermes.memory.builtin import BuiltinMemoryProvider
from hermes.paths import ProfilePaths


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The speed of the memory tool.")
    parser.add_argument("--seconds", type=float, default=0.7, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write; default: a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        home = Path(folder)
        operations = _operations(home)
        rates: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name, operation in operations.items():
                rates.setdefault(name, []).append(_rate(operation, options.seconds))
    bare = statistics.median(rates["write, fsync, rename"])
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"{name:40} {rate:8.0f} per second   {rate / bare:5.2f} of the bare write")
    return 0


def _operations(home: Path) -> dict[str, Callable[[], object]]:
    """What is measured, on a store that is two thirds full."""
    provider = BuiltinMemoryProvider(ProfilePaths(home, home / "profile"))
    provider.initialize("benchmark")
    for number in range(14):
        _call(provider, "add", content=f"Fact number {number}: " + "the build runs on pve-01 with make " * 2)
    path = home / "profile" / "memories" / "MEMORY.md"
    target = home / "bare"
    counter = iter(range(10**9))

    def replace() -> None:
        _call(provider, "replace", old_text="Fact number 7:", content=f"Fact number 7: {next(counter)}")

    def add_and_remove() -> None:
        provider.on_turn_start(1, "")
        _call(provider, "add", content="A fact that comes and goes.")
        _call(provider, "remove", old_text="comes and goes")

    return {
        "write, fsync, rename": lambda: _bare_write(target, path.stat().st_size, sync_folder=False),
        "write, fsync, rename, fsync of the folder": lambda: _bare_write(target, path.stat().st_size),
        "tool: replace": replace,
        "tool: add and remove, as pairs": add_and_remove,
        "tool: read": lambda: _call(provider, "read"),
        "prompt block of a new session": lambda: provider.on_session_switch("s"),
    }


def _call(provider: BuiltinMemoryProvider, action: str, **args: str) -> None:
    reply = provider.handle_tool_call("memory", {"action": action, "target": "memory", **args})
    if '"success": true' not in reply:
        sys.exit(reply)


def _bare_write(target: Path, size: int, *, sync_folder: bool = True) -> None:
    temp = target.with_suffix(".tmp")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(fd, b"x" * size)
    os.fsync(fd)
    os.close(fd)
    temp.replace(target)
    if sync_folder:
        fd = os.open(target.parent, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def _rate(operation: Callable[[], object], seconds: float) -> float:
    count = 0
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        operation()
        count += 1
    return count / spent


if __name__ == "__main__":
    raise SystemExit(main())
