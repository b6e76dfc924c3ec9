"""What the commands of local memory print and ask. Plain text: there are no colours to be turned off."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from hermes.errors import HermesError, UsageError


def say(text: str, stream: TextIO | None = None) -> None:
    """One text and a line end; characters that the terminal cannot show are escaped, never an error."""
    out = stream or sys.stdout
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def note(text: str) -> None:
    """A remark beside the answer."""
    say(text, sys.stderr)


def give(data: Mapping[str, Any] | Sequence[Any], text: Callable[[], str], *, as_json: bool) -> None:
    """Print *data* as JSON, or *text*."""
    say(json.dumps(data, ensure_ascii=False, indent=2) if as_json else text())


def confirm(question: str, *, yes: bool) -> None:
    """Ask the person; returns if they agree. Raises HermesError if not, UsageError where nobody is there."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{question} Nobody is there to answer", next_step="say --yes if that is what you want"
        )
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise HermesError("stopped; nothing was changed")


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Labels and values in two columns."""
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"{label.ljust(width)}  {value}".rstrip() for label, value in rows)
