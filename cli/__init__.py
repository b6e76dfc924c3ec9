"""The command line. ``--version`` is answered before anything is imported."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run ``hermes`` with the arguments of this process, and exit."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from hermes import __version__

        try:
            print(f"hermes {__version__}", flush=True)  # noqa: T201 - the answer
        except BrokenPipeError:
            pass  # nobody reads on: not our failure
        raise SystemExit(0)
    # a command is over before collecting cycles would pay: that is a sixth of its time
    gc.set_threshold(100_000, 50, 100)
    from hermes.cli.app import run

    code = run(sys.argv[1:])
    gc.freeze()  # nor is there a point in doing it once more at the very end
    raise SystemExit(code)
