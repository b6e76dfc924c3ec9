"""The setup of a memory provider."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from hermes.compat import current, terminal


def cmd_setup_provider(provider_name: str) -> None:
    """Run ``hermes memory setup`` for *provider_name* and this profile. Raises SystemExit where it fails."""
    host = current.profile()
    where = ["--home", host.root(), "--profile", host.profile_name()]
    command = [sys.executable, "-P", "-m", "hermes", *where, "memory", "setup", provider_name]
    if code := subprocess.run(command, check=False).returncode:
        raise SystemExit(code)


def _curses_select(
    title: str,
    items: Sequence[tuple[str, str] | str],
    default: int = 0,
    *,
    cancel_returns: int | None = None,
) -> int:
    """The number of the item (a label, or a label and what to say of it) that the person chooses."""
    rows = [item if isinstance(item, str) else "  ".join(part for part in item if part) for item in items]
    return terminal.choose(title, rows, default, default if cancel_returns is None else cancel_returns)
