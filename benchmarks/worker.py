"""What a process of its own costs a plugin: its start, one call there and back, and the call after a crash.

Wall time in one run, so that the lines can be compared: medians, and the value that one call in a hundred
exceeds. A bare Python start stands beside that of the worker, a call of the same object in this process beside
the one through the pipe.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.loading import load
from hermes.plugin_host.worker.opening import open_worker
from hermes.plugin_host.worker.provider import WorkerProvider
from hermes.plugin_host.worker.restarting import Backoff

STARTS, CALLS = 15, 5000
PLUGIN = """
import os, threading
from hermes.memory.provider import MemoryProvider

class Demo(MemoryProvider):
    name = "demo"
    def is_available(self): return True
    def initialize(self, session_id, **kwargs): ...
    def get_tool_schemas(self): return []
    def prefetch(self, query, *, session_id=""): return "Ada likes tea. " * 20
    def sync_turn(self, user, answer): threading.Event().wait()
    def handle_tool_call(self, tool_name, args, **kwargs): os._exit(1)

def register(ctx):
    ctx.register_memory_provider(Demo())
"""


class Nobody:
    """A host that is asked who it is, and nothing else."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def home(self) -> str:
        """Its home."""
        return str(self._home)

    def profile_name(self) -> str:
        """Its name."""
        return "default"


def taken(action: Callable[[], object], times: int) -> list[float]:
    """How long each of so many calls takes, in seconds, sorted."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        action()
        found.append(time.perf_counter() - began)
    return sorted(found)


def line(name: str, times: list[float], unit: float, of: float) -> None:
    """One line: median, 99th of a hundred, and the ratio of the median to *of*."""
    median, late = statistics.median(times), times[int(len(times) * 0.99)]
    word = "ms" if unit == 1e3 else "µs"
    print(f"{name:<46}{median * unit:9.1f} {word}{late * unit:9.1f} {word}{median / of:9.1f}")


def starts(make: Callable[[], WorkerProvider]) -> None:
    """Print what a start costs."""
    bare = taken(lambda: subprocess.run([sys.executable, "-E", "-P", "-c", "pass"], check=True), STARTS)

    def start() -> None:
        made.append(make())

    made: list[WorkerProvider] = []
    started = taken(start, STARTS)
    ended = taken(lambda: made.pop().shutdown(), STARTS)
    median = statistics.median(bare)
    line("python -c pass", bare, 1e3, median)
    line("worker: started, plugin loaded", started, 1e3, median)
    line("worker: shut down, process gone", ended, 1e3, median)


def calls(here: MemoryProvider, there: WorkerProvider, home: Path) -> None:
    """Print what a call costs."""
    direct = taken(lambda: here.prefetch("tea"), CALLS)
    median = statistics.median(direct)
    line("prefetch, in this process", direct, 1e6, median)
    line("prefetch, in the worker", taken(lambda: there.prefetch("tea"), CALLS), 1e6, median)
    for name, provider in (("in this process", here), ("in the worker", there)):
        manager = MemoryManager(home=home)
        manager.add_provider(provider)
        manager.initialize_all("s1")
        line(f"prefetch_all, {name}", taken(lambda m=manager: m.prefetch_all("tea"), CALLS), 1e6, median)  # type: ignore[misc]
        if provider is here:
            manager.shutdown_all()
    threading.Thread(target=lambda: _quietly(lambda: there.sync_turn("a", "b")), daemon=True).start()
    line("prefetch, beside a delivery that hangs", taken(lambda: there.prefetch("tea"), CALLS), 1e6, median)

    def after_a_crash() -> None:
        _quietly(lambda: there.handle_tool_call("x", {}))
        there._worker._backoff = Backoff()  # as if it had run for a while
        there.prefetch("tea")

    line("a crash, a new start and the next call", taken(after_a_crash, STARTS), 1e3, median)


def _quietly(action: Callable[[], object]) -> None:
    try:
        action()
    except Exception:  # noqa: BLE001 - it ends with its process
        return


def main() -> None:
    """Print every line."""
    print(f"{'':<46}{'median':>12}{'p99':>12}{'ratio':>9}")
    with tempfile.TemporaryDirectory() as folder:
        home, plugin = Path(folder, "home"), Path(folder, "demo")
        home.mkdir()
        plugin.mkdir()
        (plugin / "__init__.py").write_text(PLUGIN)
        spec = {"name": "demo", "kind": "memory", "path": str(plugin), "entry": "", "bundled": False}

        def make() -> WorkerProvider:
            worker = open_worker(
                spec,
                {},
                profile="default",
                home=home,
                dotenv={},
                environ=os.environ,
                host=Nobody(home),  # type: ignore[arg-type]
                limits=Limits(),
            )
            return WorkerProvider(worker)

        make().shutdown()  # the byte code of the plugin is written
        starts(make)
        context = RegistrationContext("demo")
        load(spec, context)
        there = make()
        calls(context.registered.memory_provider, there, home)
        there.close()


if __name__ == "__main__":
    main()
