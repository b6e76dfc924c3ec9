"""What the readers share: messages with an identity, moments, lines and elements of large files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from hermes.memory.conversations import Malformed, Said
from hermes.memory.fences import sanitize_context

LONGEST_LINE = 64 << 20
"""Bytes of one line that are still looked at."""

Found = Said | Malformed


def said(
    source: str,
    conversation: str,
    message_id: str,
    role: str,
    text: str,
    time: float | None,
    *,
    author: str | None = None,
) -> Said:
    """One message; where it has no id of its own, its role, time and text are its identity."""
    words = sanitize_context(text).strip()
    own = message_id or f"{role}\0{time}\0{words}"
    digest = hashlib.sha256(
        "\0".join((source, conversation, own)).encode("utf-8", "surrogatepass")
    ).hexdigest()
    message = {"role": role, "content": words}
    return Said(f"{source}:{conversation}", digest[:32], role, words, time, author, message)


def moment(value: Any) -> float | None:
    """Unix seconds of *value*: a number, in seconds or milliseconds, or an ISO text (UTC without a zone)."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) / (1000.0 if value > 1e11 else 1.0)
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return None


def texts(content: Any) -> str:
    """The text blocks of *content*: a text, or a list of texts and blocks; everything else is left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    found = []
    for block in content:
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, Mapping) and block.get("type") in ("text", "input_text", "output_text"):
            found.append(str(block.get("text") or ""))
    return "\n\n".join(text for text in found if text)


def lines(file: IO[bytes], name: str) -> Iterator[tuple[str, dict[str, Any] | Malformed]]:
    """Each line of a JSON Lines file with where it stands; one that is no JSON object is malformed."""
    for number, line in _bounded(file):
        where = f"{name}:{number}"
        if line is None:
            yield where, Malformed(where, f"a line of more than {LONGEST_LINE >> 20} MiB")
            continue
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not text:
            continue
        try:
            value = json.loads(text)
        except ValueError as exc:
            yield where, Malformed(where, f"not JSON: {exc}")
            continue
        if isinstance(value, dict):
            yield where, value
        else:
            yield where, Malformed(where, f"expected an object, found {type(value).__name__}")


def _bounded(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
        yield number, line if whole else None
        while not whole:
            rest = file.readline(LONGEST_LINE)
            whole = rest.endswith(b"\n") or len(rest) < LONGEST_LINE


def elements(file: IO[bytes], name: str, path: str) -> Iterator[tuple[str, Any]]:
    """Each element of the array at *path* (``item``: the document itself) of a JSON file, one at a time.

    Where the file is cut off or broken, what came before is given, then one Malformed.
    """
    import ijson

    number = 0
    try:
        for element in ijson.items(file, path, use_float=True):
            number += 1
            yield f"{name}[{number}]", element
    except (ijson.JSONError, UnicodeDecodeError, ValueError) as exc:
        reason = " ".join(str(exc).split())[:200]
        yield name, Malformed(name, f"broken or cut off behind element {number}: {reason}")
