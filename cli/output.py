"""What a command prints: text for people, JSON for programs, one line for an error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from hermes.cli.state import State
from hermes.errors import HermesError


def emit(state: State, data: Mapping[str, Any] | Sequence[Any], text: str | Callable[[], str]) -> None:
    """Print *data* as JSON where ``--json`` was given, otherwise *text*."""
    if state.json:
        write(json.dumps(data, ensure_ascii=False, indent=2, default=str))
    elif shown := text() if callable(text) else text:
        write(shown)


def note(state: State, text: str) -> None:
    """A remark beside the answer: on standard error, and not with ``--quiet`` or ``--json``."""
    if not state.quiet and not state.json:
        write(text, sys.stderr)


def write(text: str, stream: TextIO | None = None) -> None:
    """One text and a line end; characters that the terminal cannot show are escaped, never an error."""
    out = stream or sys.stdout
    encoding = out.encoding or "utf-8"
    out.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def fail(error: HermesError, *, as_json: bool) -> None:
    """Print *error* on standard error: one line with the next step, or an object."""
    if as_json:
        write(json.dumps({"error": error.as_dict()}, ensure_ascii=False), sys.stderr)
        return
    line = " ".join(str(error).split())
    write(f"hermes: {line}" + (f" ({error.next_step})" if error.next_step else ""), sys.stderr)


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """*text* in *style* (``bold``, ``dim``, ``red``, ``green``, ``yellow``) where *stream* is a terminal.

    ``NO_COLOR`` set to anything means plain text.
    """
    out = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not out.isatty():
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


def table(rows: Sequence[tuple[str, str]], indent: str = "") -> str:
    """Labels and values in two columns."""
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"{indent}{label.ljust(width)}  {value}".rstrip() for label, value in rows)


def ago(moment: float | None, *, now: float | None = None) -> str:
    """*moment* (Unix seconds) as a person says it: ``3 minutes ago``, ``in 2 hours``, ``never``."""
    if moment is None:
        return "never"
    seconds = (time.time() if now is None else now) - moment
    size = abs(seconds)
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if size >= length:
            count = int(size // length)
            span = f"{count} {unit}{'s' if count > 1 else ''}"
            return f"in {span}" if seconds < 0 else f"{span} ago"
    return "just now"
