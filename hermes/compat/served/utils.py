"""Files written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hermes import files


def atomic_replace(tmp_path: str | Path, target: str | Path) -> str:
    """Put *tmp_path* in the place of *target*, or of what a link there leads to; where that is. Raises OSError."""
    real = os.path.realpath(target)
    os.replace(tmp_path, real)  # noqa: PTH105 - both may be texts
    return real


def atomic_json_write(
    path: str | Path, data: Any, *, indent: int | None = 2, mode: int | None = None, **options: Any
) -> None:
    """Write *data* as JSON to *path*, whole or not at all; *options* are those of ``json.dumps``.

    Folders that are missing are made. The mode stays what it was; a new file is private. Raises OSError, and
    TypeError or ValueError for what JSON cannot hold, before anything is touched.
    """
    text = json.dumps(data, **{"indent": indent, "ensure_ascii": False, **options})
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, text.encode("utf-8", "surrogatepass"), mode=mode)


def read_json_or_empty(path: str | Path) -> dict[str, Any]:
    """The object that *path* holds; empty where there is no such file, or nothing in it.

    Raises ValueError for a file that holds something else: taken for empty, it would be written over.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return {}
    if not content.strip():
        return {}
    try:
        data = json.loads(content)
    except ValueError as exc:
        raise ValueError(f"{path} is no JSON: {exc}") from exc
    if not isinstance(data, dict):
        raise ValueError(f"{path} holds no JSON object")
    return data


def is_truthy_value(value: Any, default: bool = False) -> bool:
    """Whether *value* means yes; None means *default*."""
    if value is None:
        return default
    if isinstance(value, str):
        return value.strip().lower() in {"1", "true", "yes", "on"}
    return bool(value)
