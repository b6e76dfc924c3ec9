"""The process of one step: reads its job from a file, writes what was found to another, and is gone."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import attrs

from hermes.memory.lanes import describe
from hermes.plugin_host.loading import LoadFailed
from hermes.testing.conformance.bench import Bench, Job, NotTried
from hermes.testing.conformance.findings import Where
from hermes.testing.conformance.runner import JOB, RESULT, SECONDS


def main() -> None:
    """Do the job in the folder that the command line names."""
    folder = Path(sys.argv[1])
    trace = os.dup(2)
    faulthandler.enable(trace)
    faulthandler.dump_traceback_later(SECONDS, file=trace, exit=True)
    job = Job(**json.loads((folder / JOB).read_text()))
    bench = Bench(job)
    not_tried = _do(bench)
    result = {
        "findings": [attrs.asdict(finding) for finding in bench.findings],
        "not_tried": not_tried,
        "notes": bench.notes,
    }
    (folder / RESULT).write_text(json.dumps(result, default=str))
    os._exit(0)  # threads that a plugin left behind must not hold this up


def _do(bench: Bench) -> str:
    """Run the step; why it was not tried to its end, if it was not."""
    module, _, function = bench.job.step.partition(":")
    step: Any = getattr(importlib.import_module(f"hermes.testing.conformance.checks.{module}"), function)
    try:
        bench.enter("first")
        step(bench)
    except NotTried as exc:
        return str(exc)
    except LoadFailed as exc:
        if bench.job.check == "loads":  # the others are not even begun
            bench.error(
                f"it does not load: {exc.message}",
                why="A plugin that does not load is no memory: the host goes on without it.",
                mend="mend the line that is named; it is where the error came up",
                where=Where(exc.file, exc.line),
            )
            return ""
        return "it does not load"
    except Exception as exc:  # noqa: BLE001 - a repr or an attribute that raises, where no call was made
        bench.error(
            f"the check {bench.job.check} was ended by {describe(exc)}",
            why="A host that looks at the provider in the same way would fail there too.",
            mend="mend what raises; where nothing of the plugin is named, it is a mistake in the check",
            where=bench.place_raised(exc),
        )
        return "it could not go on"
    return ""
