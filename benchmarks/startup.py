"""CPU time from the shell's prompt to the answer, as a multiple of ``python -c pass``.

``startup.py [--python PATH] [--runs N]``: PATH is the interpreter of an environment that hermes is installed
in; a wheel tells the truth, an editable install slows every start in its environment.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

LIMITS = {"hermes --version": 2.5, "hermes --profile work memory status": 20.0}
WITH_EXTRAS = 22.0
EXTRAS = ("pydantic", "fastapi", "flask", "django", "onnxruntime", "psycopg", "mcp", "honcho")


def cpu(command: Sequence[str], environ: Mapping[str, str], cwd: Path) -> float:
    """CPU milliseconds, user and system, of *command* and what it started. Raises if it fails."""
    process = subprocess.Popen(
        command, env=environ, cwd=cwd, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def main() -> int:
    """Measure, print, and return 1 where a limit is passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--runs", type=int, default=31)
    arguments = parser.parse_args()
    python = str(arguments.python.absolute())
    script = str(Path(python).with_name("hermes"))
    with tempfile.TemporaryDirectory(prefix="hermes-startup-") as folder:
        home = Path(folder)
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("HERMES", "PYTHON"))}
        environ |= {"HERMES_HOME": folder, "PYTHONSAFEPATH": "1"}
        cpu([script, "profile", "create", "work"], environ, home)
        rows = {
            "python -c pass": [python, "-c", "pass"],
            **{name: [script, *name.split()[1:]] for name in LIMITS},
        }
        for command in rows.values():  # what is compiled and cached once is not start-up
            cpu(command, environ, home)
        times: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(arguments.runs):
            for name, command in rows.items():
                times[name].append(cpu(command, environ, home))
        limits = dict(LIMITS)
        if extras := installed(python, environ, home):
            limits["hermes --profile work memory status"] = WITH_EXTRAS
    return report(times, limits, extras)


def installed(python: str, environ: Mapping[str, str], cwd: Path) -> list[str]:
    """Which of the packages that hermes' requirements import where they exist, or its extras, are there."""
    code = f"from importlib.util import find_spec as f; print(*[n for n in {EXTRAS!r} if f(n)])"
    result = subprocess.run(
        [python, "-c", code], env=environ, cwd=cwd, capture_output=True, text=True, check=True
    )
    return result.stdout.split()


def report(times: Mapping[str, Sequence[float]], limits: Mapping[str, float], extras: Sequence[str]) -> int:
    """Print medians and ratios; 1 where a limit is passed."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    base = medians["python -c pass"]
    runs = len(times["python -c pass"])
    print(f"CPU ms, median of {runs} interleaved runs, {' '.join(extras) or 'no extras'} installed")
    failed = 0
    for name, median in medians.items():
        ratio, limit = median / base, limits.get(name)
        verdict = "" if limit is None else f"limit {limit:.1f}x {'ok' if ratio <= limit else 'EXCEEDED'}"
        failed |= limit is not None and ratio > limit
        print(f"{name:<38}{median:8.1f}{ratio:8.1f}x  {verdict}".rstrip())
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
