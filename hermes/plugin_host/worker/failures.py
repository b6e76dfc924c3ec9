"""Exceptions on their way through the pipe: those of hermes arrive as they were raised, others as a stand-in.

Standard library only: worker processes import this module.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from hermes import errors
from hermes.errors import HermesError, Problem
from hermes.plugin_host.worker.protocol import Unsendable

_LONGEST = 4000
_OURS: dict[str, type[HermesError]] = {
    name: value
    for name, value in [*vars(errors).items(), (Unsendable.__name__, Unsendable)]
    if isinstance(value, type) and issubclass(value, HermesError)
}


class PluginError(Exception):
    """Stands for an exception whose class only the other process has; its own class has the same name.

    *file* and *line* say where it was raised, in the plugin if it passed there. *exits* is True for what is no
    ``Exception``, such as SystemExit.
    """

    file: str = ""
    line: int = 0
    exits: bool = False


def pack(exc: BaseException, folder: str = "") -> dict[str, Any]:
    """*exc* for the pipe. *folder* is where the plugin lies."""
    ours = next((cls.__name__ for cls in type(exc).__mro__ if _OURS.get(cls.__name__) is cls), "")
    file, line = _place(exc.__traceback__, folder)
    return {
        "type": type(exc).__name__,
        "message": _text(exc),
        "file": file,
        "line": line,
        "exits": not isinstance(exc, Exception),
        "ours": ours,
        "fields": {key: _packed(value) for key, value in vars(exc).items() if key[:1] != "_"} if ours else {},
    }


def unpack(packed: dict[str, Any]) -> Exception:
    """The exception for what ``pack`` made."""
    cls = _OURS.get(packed["ours"])
    if cls is not None:
        ours = cls.__new__(cls, packed["message"])
        vars(ours).update({key: _unpacked(value) for key, value in packed["fields"].items()})
        vars(ours).setdefault("message", packed["message"])
        vars(ours).setdefault("next_step", "")
        return ours
    error = _stand_in(packed["type"])(packed["message"])
    error.file, error.line, error.exits = packed["file"], packed["line"], packed["exits"]
    if error.file:
        error.add_note(f"raised at {error.file}:{error.line}")
    return error


@cache
def _stand_in(name: str) -> type[PluginError]:
    return type(name, (PluginError,), {"__doc__": PluginError.__doc__})


def _text(exc: BaseException) -> str:
    try:
        return str(exc)[:_LONGEST]
    except Exception as broken:  # noqa: BLE001 - __str__ of a foreign exception may itself fail
        return f"(its text cannot be shown: {type(broken).__name__})"


def _place(trace: TracebackType | None, folder: str) -> tuple[str, int]:
    """The innermost place in *folder*, or else the innermost of all."""
    found = own = ("", 0)
    while trace is not None:
        found = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        if folder and found[0].startswith(folder):
            own = found
        trace = trace.tb_next
    return own if own[0] else found


def _packed(value: Any) -> Any:
    """A field of an error: what JSON knows as it is, the rest as a list of its kind and its parts."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Path):
        return ["path", str(value)]
    if isinstance(value, Problem):
        return ["problem", *map(_packed, value)]
    if isinstance(value, list | tuple):
        return ["items", *map(_packed, value)]
    return str(value)


def _unpacked(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *parts = value
    if kind == "path":
        return Path(parts[0])
    items = tuple(map(_unpacked, parts))
    return Problem(*items) if kind == "problem" else items
