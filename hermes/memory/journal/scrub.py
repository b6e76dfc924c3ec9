"""Forgetting: a text leaves every record, and every byte of the journal's files."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hermes.database import Database
from hermes.errors import HermesError
from hermes.files import locked
from hermes.memory.journal.encoding import dump, each_text, load
from hermes.memory.journal.records import Kind, Scrubbed, State
from hermes.memory.journal.salvage import moved_aside, remove_leftovers
from hermes.memory.journal.store import Store

FORGOTTEN = "[forgotten]"
_LOOK_INTO = 64 << 20
"""Bytes up to which a journal is searched for remainders; a larger one is written anew at once."""
_CHUNK = 1 << 20
_PIECE = 200
_SHORTEST = 20


def scrub(store: Store, text: str) -> Scrubbed:
    """Remove *text* from *store*. Raises StoreUnavailable, then nothing was changed."""
    text = text.strip()
    if not text:
        return Scrubbed()
    forms = _forms(text)
    waiting = 0

    def change(con: sqlite3.Connection) -> int:
        nonlocal waiting
        waiting = 0
        changed = 0
        for row in _rows_with(con, forms):
            if _scrub_row(con, row, text, forms):
                changed += 1
            else:
                waiting += 1
        return changed

    changed = store.change(change, durable=True)
    left = []
    if store.disk is not None and store.path is not None:
        if (changed or not waiting) and not _bytes_are_gone(store.disk, forms, look=not waiting):
            left.append(Path(f"{store.path}-wal"))
        left.extend(_scrub_copies(store.path, forms))
    return Scrubbed(changed, waiting, tuple(left))


def _forms(text: str) -> list[str]:
    """*text* as it may stand within a text: itself, or written as JSON, once or twice; longest first."""
    forms = {text}
    for _ in range(2):
        forms |= {
            json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in forms for ascii_only in (False, True)
        }
    return sorted(forms, key=lambda form: (-len(form), form))


def _rows_with(con: sqlite3.Connection, forms: Iterable[str]) -> list[tuple[Any, ...]]:
    found: dict[int, tuple[Any, ...]] = {}
    for form in forms:
        for row in con.execute(
            "SELECT seq, kind, state, payload, error FROM record WHERE instr(payload, ?1) OR instr(error, ?1)",
            (form,),
        ):
            found[row[0]] = row
    return [found[seq] for seq in sorted(found)]


def _scrub_row(con: sqlite3.Connection, row: tuple[Any, ...], text: str, forms: list[str]) -> bool:
    """Take *text* out of one record; False if the provider must still be told to forget it."""
    seq, kind, state, written, error = row
    payload = load(written)

    def forget(value: str) -> str:
        for form in forms:
            value = value.replace(form, FORGOTTEN)
        return value

    if kind == Kind.MEMORY_WRITE:
        if state == State.PENDING and _tells_to_forget(payload, text):
            con.execute("UPDATE record SET forget = ?, error = ? WHERE seq = ?", (text, forget(error), seq))
            return False
        if text in str(payload.get("content") or ""):
            instead = _removal_instead(payload) if state == State.PENDING else None
            if instead is None:
                con.execute("DELETE FROM record WHERE seq = ?", (seq,))
                return True
            payload = instead
    con.execute(
        "UPDATE record SET payload = ?, error = ? WHERE seq = ?",
        (dump(each_text(payload, forget)), forget(error), seq),
    )
    return True


def _tells_to_forget(payload: Mapping[str, Any], text: str) -> bool:
    action = payload.get("action")
    metadata = payload.get("metadata") or {}
    gone = [metadata.get("old_text"), metadata.get("previous_content")]
    if action == "remove":
        gone.append(payload.get("content"))
    return action in ("remove", "replace") and any(text in str(value or "") for value in gone)


def _removal_instead(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """A replacement whose new text is forgotten still tells that the old one is gone; an addition tells nothing."""
    metadata = payload.get("metadata") or {}
    gone = metadata.get("previous_content") or metadata.get("old_text")
    if payload.get("action") != "replace" or not gone:
        return None
    return {**payload, "action": "remove", "content": gone}


def _bytes_are_gone(disk: Database, forms: Iterable[str], *, look: bool) -> bool:
    if not disk.truncate_log():
        return False
    if look and _is_in_pages(disk, forms):
        disk.vacuum()
        return disk.truncate_log()
    return True


def _is_in_pages(disk: Database, forms: Iterable[str]) -> bool:
    """Whether a remainder lies in the free part of a page, where moving a neighbour may leave one."""
    if disk.size() > _LOOK_INTO:
        return True
    content = disk.read(lambda con: con.serialize())
    return any(piece in content for piece in _pieces(forms))


def _pieces(forms: Iterable[str]) -> list[bytes]:
    """What to look for in a file: a long text is spread over pages, and never stands there in one piece."""
    found = []
    for form in forms:
        whole = form.encode()
        pieces = [whole[at : at + _PIECE] for at in range(0, len(whole), _PIECE)]
        found += [piece for piece in pieces if len(piece) >= _SHORTEST or len(pieces) == 1]
    return found


def _scrub_copies(path: Path, forms: Iterable[str]) -> list[Path]:
    """Overwrite the text in the damaged journals that were kept; those that could not be written."""
    left = []
    needles = _pieces(forms)
    for kept in moved_aside(path):
        for file in (kept, Path(f"{kept}-wal")):
            try:
                if file.exists():
                    _overwrite(file, needles)
            except OSError:
                left.append(file)
    with contextlib.suppress(HermesError), locked(path):
        remove_leftovers(path)
    return left


def _overwrite(file: Path, needles: list[bytes]) -> None:
    overlap = max(map(len, needles)) - 1
    with open(file, "r+b") as content:  # noqa: PTH123
        start = 0
        while True:
            content.seek(start)
            block = content.read(_CHUNK + overlap)
            clean = block
            for needle in needles:
                clean = clean.replace(needle, b"x" * len(needle))
            if clean != block:
                content.seek(start)
                content.write(clean)
            if len(block) <= overlap or len(block) < _CHUNK + overlap:
                return
            start += _CHUNK
