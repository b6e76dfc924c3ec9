"""A memory file as entries, and back: what is not changed stays as it was, byte for byte.

Entries are separated by a line with ``§``. What a person writes around them stays theirs and is never part
of an entry: blank lines, comments (``<!-- … -->``) before or after an entry, and the headings at the top of
the file. Bytes that are not UTF-8 are carried along.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache

import attrs

from hermes.errors import EntryRefused

SEPARATOR = "\n§\n"

# A file in a legacy encoding has its separator in that encoding: byte A7.
_MARK = re.compile("[§\udca7]")
_DELIMITER = re.compile("[ \t]*[§\udca7][ \t]*\r?(?:\n|\\Z)")
_BLANK = re.compile(r"[ \t\r]*\n|[ \t\r]+\Z")
_COMMENT = re.compile(r"[ \t]*<!--(?:(?!-->).)*-->[ \t\r]*(?:\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"#{1,6}[ \t][^\n]*(?:\n|\Z)")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


@attrs.frozen(slots=False)  # cached properties
class Piece:
    """What stands between two separators: the entry's *body*, and what is the person's around it."""

    lead: str
    body: str
    tail: str

    @cached_property
    def raw(self) -> str:
        """The piece as it stands in the file."""
        return self.lead + self.body + self.tail

    @cached_property
    def text(self) -> str:
        """The entry, with plain line ends; empty if there is none."""
        return self.body.replace("\r\n", "\n")

    @property
    def has_notes(self) -> bool:
        """Whether something of the person's own stands around the entry."""
        return bool(self.lead.strip() or self.tail.strip())


def _split(text: str) -> tuple[list[str], list[str]]:
    """What stands between the separators, and the separators."""
    raws: list[str] = []
    separators: list[str] = []
    start = 0
    for mark in _MARK.finditer(text):
        line = text.rfind("\n", 0, mark.start()) + 1
        if found := _DELIMITER.match(text, line):
            raws.append(text[start:line])
            separators.append(found[0])
            start = found.end()
    return [*raws, text[start:]], separators


@lru_cache(maxsize=256)
def parse_piece(raw: str, *, top: bool) -> Piece:
    """Take *raw* apart; *top* is true for the first piece of a file, which may have a title."""
    cut = _end_of_lead(raw, top=top)
    rest = raw[cut:]
    body = rest[: _start_of_tail(rest)]
    if not body:
        return Piece(raw, "", "")
    indent = len(body) - len(body.lstrip())
    return Piece(raw[:cut] + body[:indent], body[indent:], rest[len(body) :])


def _end_of_lead(raw: str, *, top: bool) -> int:
    """Where the entry begins: after blank lines, comments, headings above a comment, a title at the top."""
    end = pos = 0
    waiting = False  # headings that may turn out to belong to the entry
    while pos < len(raw):
        if match := _COMMENT.match(raw, pos):
            waiting = False
            end = pos = match.end()
        elif match := _BLANK.match(raw, pos):
            pos = match.end()
            if top or not waiting:
                waiting = False
                end = pos
        elif match := _HEADING.match(raw, pos):
            is_title = top and raw.startswith("# ", pos) and not raw[:pos].strip()
            pos = match.end()
            waiting = waiting or not is_title
            if is_title:
                end = pos
        else:
            return end
    return pos if top or not waiting else end


def _start_of_tail(rest: str) -> int:
    """Where the entry ends: before blank lines, and before comments that have their lines to themselves."""
    end = len(rest.rstrip())
    while rest.endswith("-->", 0, end):
        opened = rest.rfind("<!--", 0, end)
        line = rest.rfind("\n", 0, max(opened, 0)) + 1
        if opened < 0 or rest[line:opened].strip() or rest.find("-->", opened) + 3 != end:
            break
        end = len(rest[:line].rstrip())
    return end


@attrs.frozen(slots=False)  # cached properties
class Document:
    """One memory file. Values are never changed: each edit gives a new document."""

    pieces: tuple[Piece, ...]
    separators: tuple[str, ...]
    bom: str = ""

    @classmethod
    def parse(cls, data: bytes) -> Document:
        """The document in *data*; any bytes are taken, and ``data`` gives them back."""
        return cls._of(data.decode("utf-8", "surrogateescape"))

    @classmethod
    def _of(cls, text: str) -> Document:
        bom = "\ufeff" if text.startswith("\ufeff") else ""
        raws, separators = _split(text[len(bom) :])
        return cls(tuple(parse_piece(raw, top=i == 0) for i, raw in enumerate(raws)), tuple(separators), bom)

    @cached_property
    def raw(self) -> str:
        """The whole file as text."""
        joined = [piece.raw + sep for piece, sep in zip(self.pieces, (*self.separators, ""), strict=True)]
        return self.bom + "".join(joined)

    @cached_property
    def data(self) -> bytes:
        """The whole file as bytes."""
        return self.raw.encode("utf-8", "surrogateescape")

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The entries in order; one that stands there twice counts once."""
        return tuple(dict.fromkeys(piece.text for piece in self.pieces if piece.body))

    @cached_property
    def used(self) -> int:
        """Characters of the entries, joined by their separators."""
        return len(SEPARATOR.join(self.texts))

    @property
    def headings(self) -> str:
        """The headings that the person put at the top of the file."""
        lines = _COMMENT.sub("", self.pieces[0].lead).splitlines() if self.pieces else []
        return "\n".join(line.strip() for line in lines if line.strip())

    @cached_property
    def newline(self) -> str:
        """The line end that this file uses."""
        first = self.raw.find("\n")
        return "\r\n" if first > 0 and self.raw[first - 1] == "\r" else "\n"

    def undecodable(self) -> list[tuple[int, str]]:
        """The bytes that are not UTF-8: line number and hexadecimal value."""
        raw = self.raw
        return [
            (raw.count("\n", 0, m.start()) + 1, f"0x{ord(m[0]) - 0xDC00:02x}")
            for m in _NOT_UTF8.finditer(raw)
        ]

    def added(self, text: str, at: int | None = None) -> Document:
        """With *text* as a new entry, last or before the entry number *at*. Raises EntryRefused."""
        texts = list(self.texts)
        if at is not None and at < len(texts):
            return self._inserted(text, before=texts[at])
        nl = self.newline
        body = text.replace("\n", nl)
        end = nl if not self.raw or self.raw.endswith("\n") else ""
        separators = [sep if sep.endswith("\n") else sep + nl for sep in self.separators]
        *before, last = self.pieces
        wanted = [*texts, text]
        if not last.body:
            filled = Piece(_ended(last.raw, nl), body, end)
            if found := self._fitting([*before, filled], separators, wanted):
                return found
        closed = last if last.raw.endswith("\n") else attrs.evolve(last, tail=last.tail + nl)
        return self._checked([*before, closed, Piece("", body, end)], [*separators, f"§{nl}"], wanted)

    def _inserted(self, text: str, before: str) -> Document:
        index = next(i for i, piece in enumerate(self.pieces) if piece.text == before)
        new = Piece("", text.replace("\n", self.newline), self.newline)
        old = self.pieces[index]
        pair = [new, old]
        if index == 0:  # a title stays above
            pair = [attrs.evolve(new, lead=old.lead), attrs.evolve(old, lead="")]
        pieces = [*self.pieces[:index], *pair, *self.pieces[index + 1 :]]
        separators = [*self.separators[:index], f"§{self.newline}", *self.separators[index:]]
        at = self.texts.index(before)
        return self._checked(pieces, separators, [*self.texts[:at], text, *self.texts[at:]])

    def replaced(self, old: str, new: str) -> Document:
        """With *new* in place of the entry *old*, wherever it stands. Raises EntryRefused."""
        if new in self.texts:
            return self if new == old else self.removed(old)
        index = next(i for i, piece in enumerate(self.pieces) if piece.text == old)
        body = new.replace("\n", self.newline)
        pieces = [attrs.evolve(p, body=body) if i == index else p for i, p in enumerate(self.pieces)]
        wanted = [new if text == old else text for text in self.texts]
        copies = [i for i, piece in enumerate(pieces) if piece.text == old]
        changed, separators = _without(pieces, list(self.separators), copies, self.raw)
        return self._checked(changed, separators, wanted)

    def removed(self, text: str) -> Document:
        """Without the entry *text*, wherever it stands. Raises EntryRefused."""
        gone = [i for i, piece in enumerate(self.pieces) if piece.text == text]
        pieces, separators = _without(list(self.pieces), list(self.separators), gone, self.raw)
        return self._checked(pieces, separators, [t for t in self.texts if t != text])

    def _checked(self, pieces: Sequence[Piece], separators: Sequence[str], wanted: list[str]) -> Document:
        """The first way of writing these pieces that is read back as *wanted*."""
        found = self._fitting(pieces, separators, wanted)
        if found is None:
            found = self._fitting(*_title_apart(pieces, separators, self.newline), wanted)
        if found is None:
            raise EntryRefused("this text would not be read back as one entry", kind="content")
        return found

    def _fitting(
        self, pieces: Sequence[Piece], separators: Sequence[str], wanted: list[str]
    ) -> Document | None:
        written = Document(tuple(pieces), tuple(separators), self.bom)
        again = Document._of(written.raw)
        return again if list(again.texts) == wanted else None


def is_one_entry(text: str) -> bool:
    """Whether *text* can be written as one entry: no line with ``§``, no comment at either end."""
    return not _split(text)[1] and parse_piece(text, top=False).body == text


def shown(text: str) -> str:
    """*text* as it can be printed: a byte that is not UTF-8 becomes U+FFFD."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _ended(text: str, newline: str) -> str:
    """*text*, closed by a line end unless it is empty or has one."""
    return text if not text or text.endswith("\n") else text + newline


def _without(
    pieces: list[Piece], separators: list[str], gone: Sequence[int], raw: str
) -> tuple[list[Piece], list[str]]:
    """Take the entries *gone* out, each with one separator; what is the person's own around them stays."""
    for index in reversed(gone):
        piece = pieces[index]
        if piece.has_notes:
            pieces[index] = Piece(piece.lead + piece.tail.lstrip("\r\n"), "", "")
        elif len(pieces) == 1:
            pieces[index] = Piece("", "", "")
        else:
            was_last = index == len(pieces) - 1
            del pieces[index], separators[max(0, index - 1)]
            if was_last and not raw.endswith("\n"):
                pieces[-1] = _unended(pieces[-1])
    return pieces, separators


def _unended(piece: Piece) -> Piece:
    part = "tail" if piece.body else "lead"
    text: str = getattr(piece, part)
    return attrs.evolve(piece, **{part: text.removesuffix("\n").removesuffix("\r")})


def _title_apart(
    pieces: Sequence[Piece], separators: Sequence[str], newline: str
) -> tuple[list[Piece], list[str]]:
    """With the top of the file in a piece of its own: an entry's heading is not to be taken for its title."""
    first = pieces[0]
    title = Piece(_ended(first.lead, newline) or newline, "", "")
    return [title, attrs.evolve(first, lead=""), *pieces[1:]], [f"§{newline}", *separators]
