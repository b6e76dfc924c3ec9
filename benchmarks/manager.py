"""What the manager adds to a call into a provider, against ways of bounding a call that are commonly used.

All in one run, wall time per call, medians; the provider answers at once, so what is left is the manager's own.
The last line is for calls with a pause between them, in which the caches go cold and the processor to sleep.
"""

from __future__ import annotations

import concurrent.futures
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from hermes.memory.manager import MemoryManager
from hermes.testing import RecordingProvider

CALLS, ROUNDS = 200, 15
PAUSE = 0.002
"""Seconds between two calls, for the last line."""


class Quick(RecordingProvider):
    """Answers at once and remembers nothing."""

    def _record(self, member: str, **given: Any) -> None:
        return


def thread_per_call(fn: Callable[[], Any]) -> Any:
    """A thread for every call, joined with a limit."""
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(fn()), daemon=True)
    thread.start()
    thread.join(3.0)
    return result[0]


def executor_per_call(fn: Callable[[], Any]) -> Any:
    """An executor of its own for every call."""
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    try:
        return pool.submit(fn).result(timeout=3.0)
    finally:
        pool.shutdown(wait=False)


def microseconds(fn: Callable[[], Any], pause: float = 0.0) -> float:
    """The median time of one call of *fn*, each after a pause of so many seconds."""
    taken = []
    for _ in range(CALLS):
        if pause:
            time.sleep(pause)
        began = time.perf_counter()
        fn()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e6


def main() -> None:
    """Print a row for each call."""
    provider = Quick(recall="Ada likes tea.")
    manager = MemoryManager()
    manager.add_provider(provider)
    manager.initialize_all("s1")
    query = "What does Ada like to drink?"
    ways: dict[str, Callable[[], Any]] = {
        "provider.prefetch, called directly": lambda: provider.prefetch(query),
        "a thread per call": lambda: thread_per_call(lambda: provider.prefetch(query)),
        "an executor per call": lambda: executor_per_call(lambda: provider.prefetch(query)),
        "prefetch_all": lambda: manager.prefetch_all(query),
        "on_turn_start": lambda: manager.on_turn_start(1, query),
        "handle_tool_call": lambda: manager.handle_tool_call("recording_echo", {"text": "x"}),
        "build_system_prompt": manager.build_system_prompt,
        "get_all_tool_schemas": manager.get_all_tool_schemas,
        "queue_prefetch_all": lambda: manager.queue_prefetch_all(query),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):  # in turn, so that a slow moment of the machine meets them all
        for name, way in ways.items():
            taken[name].append(microseconds(way))
    names = ("a thread per call", "prefetch_all")
    paused = [statistics.median(microseconds(ways[name], PAUSE) for _ in range(3)) for name in names]
    manager.shutdown_all()
    unit = statistics.median(taken["prefetch_all"])
    print(f"{'microseconds a call, median of ' + str(ROUNDS) + ' rounds':<40}     times prefetch_all")
    for name, rounds in taken.items():
        median = statistics.median(rounds)
        print(f"{name:<40}{median:10.1f}{median / unit:10.2f}x")
    threads = statistics.median(taken["a thread per call"]) / unit
    print(f"a thread per call takes {threads:.1f} times as long as prefetch_all (target: at least 3)")
    slow, fast = paused
    print(
        f"with {PAUSE * 1000:.0f} ms between two calls: {slow:.1f} and {fast:.1f} us, {slow / fast:.1f} times"
    )


if __name__ == "__main__":
    main()
