"""CPU time of a profile's container in a process that has imported what it needs.

Small: build, resolve settings, paths, secrets and the list of plugins, close; no store opened, no plugin
loaded. Full: the manager with its providers and the journal, a session begun and ended.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hermes.containers import Hermes

LIMITS = {"small": 3.0, "full": 10.0}
RUNS = 200


def small(root: Hermes) -> None:
    """Open and close, looking at what needs no store."""
    with root.open("work") as me:
        me.settings()
        me.paths()
        me.secrets()
        me.plugins()


def full(root: Hermes) -> None:
    """Open and close with everything built and initialised."""
    with root.open("work") as me:
        me.builtin_provider()
        manager = me.memory_manager()
        manager.initialize_all("benchmark", platform="cli")
        manager.build_system_prompt()


def measure(action: Callable[[Hermes], None], root: Hermes) -> list[float]:
    """CPU milliseconds of each run, after one that is not counted."""
    action(root)
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        action(root)
        times.append((time.process_time() - began) * 1000)
    return sorted(times)


def main() -> int:
    """Measure, print, and return 1 where a limit is passed."""
    with tempfile.TemporaryDirectory(prefix="hermes-container-") as folder:
        home = Path(folder) / "profiles" / "work"
        home.mkdir(parents=True)
        (home / "config.yaml").write_text("memory:\n  provider: local\n", encoding="utf-8")
        root = Hermes(environ={"HERMES_HOME": folder})
        results = {"small": measure(small, root), "full": measure(full, root)}
    print(f"CPU ms of {RUNS} openings in one process")
    failed = False
    for name, times in results.items():
        median, p99 = statistics.median(times), times[int(len(times) * 0.99)]
        failed |= median > LIMITS[name]
        verdict = "ok" if median <= LIMITS[name] else "EXCEEDED"
        print(f"{name:<8} median {median:6.2f}   p99 {p99:6.2f}   limit {LIMITS[name]:.0f}  {verdict}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
