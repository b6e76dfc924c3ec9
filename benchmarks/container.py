"""CPU time of a profile's container in a process that has imported what it needs.

``container``: built with settings that are given, its parts without a store or a plugin resolved, closed.
``settings``: the same, its settings read from their files. ``full``: besides, the manager with its providers
and the journal, and a session begun and ended.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hermes.containers import Hermes

LIMITS = {"container": 3.0, "full": 10.0}
RUNS = 200


def parts(root: Hermes) -> None:
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
        with root.open("work") as me:
            given = root.override(settings=me.settings())
        results = {
            "container": measure(parts, given),
            "settings": measure(parts, root),
            "full": measure(full, root),
        }
    print(f"CPU ms of {RUNS} openings in one process")
    failed = False
    for name, times in results.items():
        median, limit = statistics.median(times), LIMITS.get(name)
        failed |= limit is not None and median > limit
        verdict = f"limit {limit:.0f} {'ok' if median <= limit else 'EXCEEDED'}" if limit else ""
        print(f"{name:<10} median {median:6.2f}   p99 {times[int(RUNS * 0.99)]:6.2f}   {verdict}".rstrip())
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
