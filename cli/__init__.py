"""The command line. ``--version`` is answered before anything is imported."""

from __future__ import annotations

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
    from hermes.cli.app import run

    raise SystemExit(run(sys.argv[1:]))
