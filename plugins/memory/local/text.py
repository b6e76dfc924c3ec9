"""Text to search terms, the same for what is stored and for what is asked.

A term never holds white space or a quote, so it can stand in a query as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from hermes.plugins.memory.local.stem import stem

PASSAGE_WORDS = 100
PASSAGE_OVERLAP = 20
MAX_PASSAGES = 64
JOINERS = "-_./:@+#\\~&="
"""Punctuation that may stand inside an identifier."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0963\u0966-\u0dff\u135d-\u135f\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u200c\u200d"
)
_LETTER = rf"(?:[^\W_]|[{_MARKS}])"
_INSIDE = re.escape(JOINERS)
_CHUNK_ASCII = re.compile(rf"[a-zA-Z0-9]+(?:(?:[{_INSIDE}]+|')[a-zA-Z0-9]+)*(?:\+\+|#)?")
_CHUNK = re.compile(rf"{_LETTER}+(?:(?:[{_INSIDE}]+|['’]){_LETTER}+)*(?:\+\+|#)?")
_RUN = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003134f]+"
)
"""Scripts that are written without spaces, or whose words take endings: indexed as pairs of characters."""
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|"
    "[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_STRIPPED = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d]"
)
_INNER = re.compile(rf"[{_INSIDE}'’]+")
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_CONTRACTED = frozenset({"s", "t", "d", "ll", "m", "re", "ve"})
_CACHE_LIMIT = 50_000


class _Words(dict[str, str]):
    """What stands between white space -> its terms, space between; what is met often is worked out once."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        chunks = [word] if word.isalpha() else _CHUNK_ASCII.findall(word)
        self[word] = found = " ".join([_CHUNKS[chunk] for chunk in chunks])
        return found


class _Chunks(dict[str, str]):
    """The same for chunks, which hold no punctuation but that of an identifier."""

    def __missing__(self, chunk: str) -> str:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        if (
            chunk.isascii() and chunk.isalpha() and (chunk.islower() or chunk.istitle())
        ):  # most are plain words
            found = stem(chunk.lower())
        else:
            found = " ".join(dict.fromkeys(_terms_of_chunk(chunk)))
        self[chunk] = found
        return found


_CHUNKS = _Chunks()
_WORDS = _Words()


def terms(text: str) -> str:
    """The search terms of *text* in order, one space between."""
    if text.isascii():
        return " ".join(filter(None, map(_WORDS.__getitem__, text.split())))
    text = unicodedata.normalize("NFKC", text)
    extra: list[str] = []
    if _RUN.search(text):
        text = _RUN.sub(lambda run: _take_run(run.group(), extra), text)
    extra.extend(_EMOJI.findall(text))
    return " ".join([*map(_CHUNKS.__getitem__, _CHUNK.findall(text)), *extra])


def pairs(run: str) -> list[str]:
    """The overlapping pairs of *run*, and its last character, so that any character begins some term."""
    return [run[i : i + 2] for i in range(len(run))]


def runs(text: str) -> list[str]:
    """The parts of *text* in scripts without spaces."""
    return [] if text.isascii() else _RUN.findall(unicodedata.normalize("NFKC", text))


def _take_run(run: str, into: list[str]) -> str:
    into.extend(pairs(run))
    return " "


def _terms_of_chunk(chunk: str) -> Iterator[str]:
    """An identifier whole and in its parts; a word as its stem."""
    if "'" in chunk or "’" in chunk:
        yield from _apostrophe(chunk)
        return
    parts = _INNER.split(chunk.rstrip("+#"))
    if len(parts) > 1 or chunk[-1] in "+#":
        yield fold(chunk)
    for part in parts:
        yield from _terms_of_word(part)


def _apostrophe(chunk: str) -> Iterator[str]:
    parts = [part for part in _INNER.split(chunk) if part]
    if len(parts) == 2 and parts[1].lower() in _CONTRACTED:
        parts = parts[:1]
    for part in parts:
        yield from _terms_of_word(part)


def _terms_of_word(word: str) -> Iterator[str]:
    folded = fold(word)
    if not folded:
        return
    yield stem(folded) if folded.isascii() and folded.isalpha() else folded
    if not word.isalpha() or not (word.islower() or word.istitle() or word.isupper()):
        pieces = _CAMEL.findall(word) if word.isascii() else []
        if len(pieces) > 1:
            yield from (stem(piece.lower()) for piece in pieces)


def fold(word: str) -> str:
    """*word* without case and accents."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFC", _STRIPPED.sub("", unicodedata.normalize("NFD", word.casefold())))


def passages(found: str) -> list[str]:
    """*found*, as ``terms`` gave it, in overlapping pieces short enough to be compared with one another."""
    if len(found) < PASSAGE_WORDS * 6:
        return [found]
    words = found.split(" ")
    if len(words) <= PASSAGE_WORDS * 3 // 2:
        return [found]
    step = PASSAGE_WORDS - PASSAGE_OVERLAP
    starts = range(0, len(words) - PASSAGE_OVERLAP, step)
    if len(starts) <= MAX_PASSAGES:
        return [" ".join(words[i : i + PASSAGE_WORDS]) for i in starts]
    size = -(-len(words) // MAX_PASSAGES)
    return [" ".join(words[i : i + size]) for i in range(0, len(words), size)]


def storable(text: str) -> str:
    """*text* as it can be kept: a lone surrogate, which no encoding takes, becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text
