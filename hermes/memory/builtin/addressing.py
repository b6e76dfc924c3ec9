"""Which entry is meant by a piece of text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from hermes.errors import EntryNotFound, EntryRefused
from hermes.memory.builtin.entries import shown
from hermes.memory.builtin.values import Target, entry_id

_LOOKALIKES = {
    **dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-"),
    **dict.fromkeys(map(ord, "‘’‚‛′ʼ＇`´"), "'"),
    **dict.fromkeys(map(ord, "“”„‟″«»＂"), '"'),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), None),
    ord("…"): "...",
}
_SPACES = re.compile(r"\s+")
_DASHES = re.compile("-{2,3}")


def fold(text: str) -> str:
    """*text* with what models confuse made equal: dashes, quotes, spaces, composed and decomposed letters."""
    plain = unicodedata.normalize("NFC", text).translate(_LOOKALIKES)
    return _DASHES.sub("-", _SPACES.sub(" ", plain)).strip()


def find(entries: Sequence[str], wanted: str, target: Target) -> str:
    """The entry of *entries* that *wanted* means: a whole entry, else part of exactly one, else an id.

    Look-alikes are tried where nothing matches as it stands. Raises EntryRefused where several match and
    EntryNotFound where none does.
    """
    needle = wanted.strip()
    if not needle:
        raise EntryRefused("old_text is empty", kind="arguments", entries=list(map(shown, entries)))
    ways: tuple[tuple[Callable[[str], str], str], ...] = (
        (shown, shown(needle)),
        (_folded, fold(shown(needle))),
    )
    for form, text in ways:
        if whole := [entry for entry in entries if form(entry) == text]:
            return _the_only(whole, wanted)
        if text and (parts := [entry for entry in entries if text in form(entry)]):
            return _the_only(parts, wanted)
    for entry in entries:
        if entry_id(target, entry) == needle:
            return entry
    raise EntryNotFound(f"no entry holds {_short(needle)!r}", entries=list(map(shown, entries)))


def _folded(entry: str) -> str:
    return fold(shown(entry))


def _the_only(found: list[str], wanted: str) -> str:
    if len(found) > 1:
        raise EntryRefused(
            f"{len(found)} entries hold {_short(wanted)!r}",
            kind="ambiguous",
            entries=list(map(shown, found)),
            next_step="give more of the text of the one that is meant",
        )
    return found[0]


def _short(text: str) -> str:
    return shown(text if len(text) <= 80 else text[:79] + "…")
