"""Running checks: each step in a process of its own, whose home, environment and network are made for it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from hermes.testing.conformance.checks import CHECKS, Check
from hermes.testing.conformance.findings import Finding, Outcome, Report, finding_of

if TYPE_CHECKING:
    from hermes.plugin_host.plugin import Plugin
    from hermes.testing.conformance.filling import Filled

# What only this side needs is imported where it is used: the processes of the checks import this package too.

_KEPT = re.compile(r"PATH|LANG|LC_\w+|TZ|PYTHONPATH|VIRTUAL_ENV|LD_LIBRARY_PATH|SYSTEMROOT", re.IGNORECASE)
_IN_TRACE = re.compile(r'File "([^"]+)", line (\d+)')
_LINES_KEPT = 200
JOB, RESULT = "job.json", "result.json"
SECONDS = 75.0
"""A step that takes longer is hung: every call in it has a limit of its own."""
_START = "from hermes.testing.conformance.child import main; main()"


class Examination:
    """The checks of one plugin. *answers* fill in fields of its form: a backend on this machine, for example."""

    def __init__(self, plugin: Plugin, answers: Mapping[str, Any] | None = None) -> None:
        self.plugin = plugin
        self._answers = dict(answers or {})
        self._manifest = plugin.manifest.as_dict()
        self._loads: tuple[Outcome, Filled] | None = None
        self.folder = plugin.path
        """Where it lies; of a package, that may be known only once it was loaded."""

    def run(self, name: str) -> Outcome:
        """The check called *name*, run now. Raises ``KeyError`` for a name that is none."""
        check = CHECKS[name]
        loads, filled = self._loaded()
        if name == "loads":
            return loads
        if loads.errors:
            return Outcome(name, check.rule, not_tried="it does not load")
        return self._run(check, filled)[0]

    def report(self) -> Report:
        """Every check, one after the other."""
        outcomes = tuple(self.run(name) for name in CHECKS)
        return Report(self.plugin.name, self.folder, outcomes)

    def _loaded(self) -> tuple[Outcome, Filled]:
        """That it loads, tried once, and its form, filled in."""
        from hermes.testing.conformance.filling import Filled, fill

        if self._loads is None:
            outcome, facts = self._run(CHECKS["loads"], Filled())
            filled = fill(self.plugin.name, facts, self._manifest, self._answers)
            self._loads = outcome, filled
            if self.folder is None and facts.get("folder"):
                self.folder = Path(facts["folder"])
        return self._loads

    def _run(self, check: Check, filled: Filled) -> tuple[Outcome, dict[str, Any]]:
        notes: dict[str, Any] = {}
        findings: list[Finding] = []
        not_tried = ""
        with _surroundings() as root:
            filled = filled.moved_to(root)
            filled.write(root)
            for step in check.steps:
                result = self._step(check, step, root, filled, notes)
                findings += map(finding_of, result["findings"])
                notes, not_tried = result["notes"], result["not_tried"]
                if not_tried:
                    break
        return Outcome(check.name, check.rule, tuple(findings), not_tried), notes

    def _step(
        self, check: Check, step: str, root: Path, filled: Filled, notes: dict[str, Any]
    ) -> dict[str, Any]:
        job = {
            "check": check.name,
            "step": step,
            "spec": self.plugin.spec(),
            "manifest": self._manifest,
            "folder": str(self.folder or ""),
            "distribution": self.plugin.distribution,
            "root": str(root),
            "filled": filled.for_child(),
            "notes": notes,
        }
        (root / JOB).write_text(json.dumps(job, default=str))
        (root / RESULT).unlink(missing_ok=True)
        code, said = _process(root, filled.dotenv)
        try:
            result: dict[str, Any] = json.loads((root / RESULT).read_text())
        except (OSError, ValueError):
            died = self._died(check, code, said)
            return {"findings": [attrs.asdict(died)], "not_tried": "its process died", "notes": {}}
        return result

    def _died(self, check: Check, code: int, said: list[str]) -> Finding:
        """The finding that a process ended without a word; *said* is what it left on standard error."""
        folder = str(self.folder or "")
        places = [(m[1], int(m[2])) for line in said for m in _IN_TRACE.finditer(line)]
        file, line = next((place for place in places if folder and place[0].startswith(folder)), ("", 0))
        hung = any("Timeout (" in line for line in said) or code == -signal.SIGKILL
        how = (
            f"hung for {SECONDS:.0f} s" if hung else f"was ended by signal {-code}" if code < 0 else "exited"
        )
        last = said[-1].strip() if said and not hung and not _IN_TRACE.search(said[-1]) else ""
        return Finding(
            check.name,
            "error",
            f"the process {how}" + (f" ({last})" if last else ""),
            "A host that runs it in its own process would end or hang with it.",
            "never call os._exit or sys.exit, and give every wait a limit",
            file or folder,
            line,
        )


@contextlib.contextmanager
def _surroundings() -> Any:
    """A folder that holds the world of one check, gone after it."""
    import shutil
    import tempfile

    root = Path(tempfile.mkdtemp(prefix="hermes-check-")).resolve()
    try:
        for name in ("home", "work", "tmp"):
            (root / name).mkdir()
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _process(root: Path, dotenv: Mapping[str, str]) -> tuple[int, list[str]]:
    """Run the job in *root* to its end: the exit code, and the end of what it said on standard error."""
    import subprocess

    from hermes.testing.conformance.processes import end_all

    child = subprocess.Popen(
        [sys.executable, "-P", "-u", "-c", _START, str(root)],
        env=_environ(root) | dict(dotenv),
        cwd=root / "work",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stderr is not None
    said: deque[bytes] = deque(maxlen=_LINES_KEPT)
    reader = threading.Thread(target=said.extend, args=(child.stderr,), daemon=True)
    reader.start()
    try:
        child.wait(SECONDS + 15)
    except subprocess.TimeoutExpired:
        pass  # it is ended below, with everything that it started
    finally:
        child.kill()
        child.wait()
        end_all(root)
        reader.join(5)
        child.stderr.close()
    return child.returncode, [line.decode(errors="replace") for line in said]


def _environ(root: Path) -> dict[str, str]:
    """The environment of a step: where to find programs, a home of its own, nothing of this person's."""
    import site

    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    return {
        **kept,
        "HOME": str(root / "home"),
        "USERPROFILE": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "HERMES_HOME": str(root / "hermes" / "profiles" / "first"),
        "HERMES_PROFILE": "first",
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
    }
