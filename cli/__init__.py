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
    code = _hook() if sys.argv[5:7] == ["hooks", "run"] else None
    if code is None:
        from hermes.cli.app import run

        code = run(sys.argv[1:])
    gc.freeze()  # nor is there a point in doing it once more at the very end
    raise SystemExit(code)


def _hook() -> int | None:
    """Handle the event of a client without the command tree, which takes longer to build than all the rest."""
    from hermes.cli.hook_run import as_installed, handle

    asked = as_installed(sys.argv[1:])
    if asked is None:
        return None
    handle(*asked)
    sys.stdout.flush()
    return 0
