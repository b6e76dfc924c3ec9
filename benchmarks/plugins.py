"""What it costs to list plugins: CPU time of ``hermes plugins list`` with many installed, and of looking alone.

``plugins.py [--python PATH] [--plugins N] [--others N] [--runs N]``: half of the plugins lie in the home's
``plugins/``, half are installed packages among so many other distributions. PATH is the interpreter of an
environment that hermes is installed in; a wheel tells the truth, an editable install slows every start.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from startup import cpu

LIMIT = 150.0
SOURCE = '''"""A provider."""
from agent.memory_provider import MemoryProvider

class Provider(MemoryProvider):
    """Remembers nothing."""

def register(ctx):
    ctx.register_memory_provider(Provider())
'''


def make_folders(home: Path, count: int) -> None:
    """So many plugins in the home's ``plugins/``, with a manifest each, kind and name as authors write them."""
    for number in range(count):
        folder = home / "plugins" / f"folder-{number:03}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(SOURCE)
        (folder / "helper.py").write_text("VALUE = 1\n" * 200)
        hooks = "hooks:\n  - on_session_end\n" if number % 2 else "hooks:\n  - sync_turn\n"
        (folder / "plugin.yaml").write_text(f"name: folder-{number:03}\nversion: 1.{number}.0\n{hooks}")


def make_packages(site: Path, plugins: int, others: int) -> None:
    """So many distributions with an entry point in each of the groups in turn, and others without."""
    groups = ("hermes_agent.memory_providers", "hermes_agent.plugins")
    for number in range(plugins + others):
        name = f"package_{number:03}"
        package, info = site / name, site / f"{name}-1.{number}.0.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        (package / "__init__.py").write_text(SOURCE)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.{number}.0\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n" * 100)
        if number < plugins:
            (info / "entry_points.txt").write_text(f"[{groups[number % 2]}]\n{name} = {name}:register\n")
        elif number % 3 == 0:
            (info / "entry_points.txt").write_text(f"[console_scripts]\n{name} = {name}:main\n")


def looking(site: Path, home: Path, runs: int) -> list[float]:
    """CPU milliseconds of finding all of them in a process that has imported what it needs."""
    from hermes.plugin_host.discovery import Places

    places = Places(home / "plugins", None, [str(site)])
    times = []
    for _ in range(runs):
        began = time.process_time()
        places.all()
        times.append((time.process_time() - began) * 1000)
    return times


def main() -> int:
    """Measure, print, and return 1 where the limit is passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--plugins", type=int, default=80)
    parser.add_argument("--others", type=int, default=120)
    parser.add_argument("--runs", type=int, default=21)
    given = parser.parse_args()
    python = str(given.python.absolute())
    with tempfile.TemporaryDirectory(prefix="hermes-plugins-") as folder:
        home, site = Path(folder, "home"), Path(folder, "site")
        make_folders(home, given.plugins // 2)
        make_packages(site, given.plugins - given.plugins // 2, given.others)
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("HERMES", "PYTHON"))}
        environ |= {"HERMES_HOME": str(home), "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
        hermes = str(Path(python).with_name("hermes"))
        rows = {"python -c pass": [python, "-c", "pass"], "hermes --help": [hermes, "--help"]}
        rows["hermes plugins list"] = [hermes, "plugins", "list", "--json"]
        for command in rows.values():  # what is compiled and cached once is not start-up
            cpu(command, environ, home)
        times = {
            name: [cpu(command, environ, home) for _ in range(given.runs)] for name, command in rows.items()
        }
        times["looking alone"] = looking(site, home, given.runs)
    return report(times, given.plugins)


def report(times: Mapping[str, Sequence[float]], plugins: int) -> int:
    """Print medians and ratios; 1 where the limit is passed."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians["python -c pass"]
    print(f"CPU ms, median of {len(times['python -c pass'])} runs, {plugins} plugins installed")
    for name, median in medians.items():
        print(f"{name:<24}{median:8.1f}{median / base:8.1f}x")
    exceeded = medians["hermes plugins list"] > LIMIT
    print(f"limit {LIMIT:.0f} ms for the list: {'EXCEEDED' if exceeded else 'ok'}")
    return int(exceeded)


if __name__ == "__main__":
    raise SystemExit(main())
