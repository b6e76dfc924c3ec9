"""A memory file as entries and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.memory.builtin.content import clean
from hermes.memory.builtin.entries import Document, is_one_entry

HAND_WRITTEN = """\
# My notes

<!-- keep it short -->
alpha
§

beta
<!-- why: ask Ann -->
§
# Deploy
gamma
§
<!-- of 2024 -->
delta
""".encode()

chunks = st.lists(
    st.sampled_from(
        [
            b"alpha",
            b"# T",
            b"## H",
            b"<!-- c -->",
            b"<!-- open",
            b"",
            b" ",
            b"\xff",
            "§".encode(),
            b"\xa7",
            b"b\xe9",
            "é".encode(),
        ]
    ),
    max_size=12,
)


def test_parts_of_a_hand_written_file() -> None:
    """Titles and comments are the person's; a heading that touches its text belongs to the entry."""
    document = Document.parse(HAND_WRITTEN)
    assert document.texts == ("alpha", "beta", "# Deploy\ngamma", "delta")
    assert document.headings == "# My notes"
    assert document.data == HAND_WRITTEN


@pytest.mark.parametrize("text", ["alpha", "beta", "# Deploy\ngamma", "delta"])
def test_removal_takes_one_entry_and_nothing_else(text: str) -> None:
    """Whichever entry goes, headings, comments and all other entries stay."""
    left = Document.parse(HAND_WRITTEN).removed(text)
    assert left.texts == tuple(t for t in ("alpha", "beta", "# Deploy\ngamma", "delta") if t != text)
    for mine in (b"# My notes", b"<!-- keep it short -->", b"<!-- why: ask Ann -->", b"<!-- of 2024 -->"):
        assert mine in left.data


def test_a_replacement_changes_the_bytes_of_its_entry_only() -> None:
    """The diff of a replacement is the entry."""
    after = Document.parse(HAND_WRITTEN).replaced("beta", "BETA\ntwo").data
    assert after == HAND_WRITTEN.replace(b"beta", b"BETA\ntwo")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"x\n"),
        (b"a", "a\n§\nx".encode()),
        (b"a\n", "a\n§\nx\n".encode()),
        ("a\n§\n".encode(), "a\n§\nx\n".encode()),
        ("a\n§".encode(), "a\n§\nx".encode()),
        (b"\xef\xbb\xbfa\r\n", b"\xef\xbb\xbfa\r\n\xc2\xa7\r\nx\r\n"),
        (b"# Notes\n\n", b"# Notes\n\nx\n"),
        (b"likes caf\xe9\n", b"likes caf\xe9\n\xc2\xa7\nx\n"),
    ],
)
def test_an_addition_only_appends(before: bytes, after: bytes) -> None:
    """A new entry comes last, with the line ends and the kind of last line that the file has."""
    assert Document.parse(before).added("x").data == after


@pytest.mark.parametrize("text", ["# Title\nbody", "# Title\n\nbody", "## H\n\nbody", "# only a heading"])
def test_an_entry_may_begin_with_a_heading(text: str) -> None:
    """What the tool wrote is one entry when it is read back, at the top of the file too."""
    document = Document.parse(b"").added(text).added("other")
    assert Document.parse(document.data).texts == (text, "other")
    assert document.removed("other").removed(text).texts == ()


def test_removing_the_first_entry_makes_no_title_of_the_next() -> None:
    """An entry's own heading is not taken for the title of the file when it comes to stand first."""
    document = Document.parse("a\n§\n# H\n\nb".encode()).removed("a")
    assert document.texts == ("# H\n\nb",)


def test_copies_of_an_entry_are_one_entry() -> None:
    """A duplicate counts once and goes with the other."""
    document = Document.parse("a\n§\nb\n§\na\n".encode())
    assert document.texts == ("a", "b")
    assert document.used == len("a\n§\nb")
    assert document.removed("a").texts == ("b",)


def test_a_legacy_encoding_has_its_own_separator() -> None:
    """In a cp1252 file the separator is byte A7."""
    document = Document.parse(b"caf\xe9\n\xa7\nb\n")
    assert document.texts == ("caf\udce9", "b")
    assert document.undecodable() == [(1, "0xe9"), (2, "0xa7")]
    assert document.removed("b").data == b"caf\xe9\n"


def test_separators_are_lines_of_their_own() -> None:
    """A § within a line is text."""
    assert Document.parse("see § 4\nand §\n§ 5".encode()).texts == ("see § 4\nand §\n§ 5",)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("see § 4", True),
        ("a\n§\nb", False),
        ("a\n § \nb", False),
        ("<!-- a -->\nb", False),
        ("b\n<!-- a -->", False),
        ("b <!-- a -->", True),
        ("<!-- never closed", True),
        ("<!-- a --> b", True),
    ],
)
def test_what_can_be_one_entry(text: str, good: bool) -> None:
    """A separator within, or a comment at either end, would be read back as something else."""
    assert is_one_entry(text) is good


@given(chunks, st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_any_file_comes_back_byte_for_byte(lines: list[bytes], newline: bytes, bom: bool) -> None:
    """Reading and writing without a change gives the same bytes, whatever they are."""
    data = (b"\xef\xbb\xbf" if bom else b"") + newline.join(lines)
    assert Document.parse(data).data == data


@given(chunks, st.sampled_from([b"\n", b"\r\n"]), st.sampled_from(["x", "# T\n\ny", "p\nq"]))
def test_edits_of_any_file_do_what_they_say(lines: list[bytes], newline: bytes, new: str) -> None:
    """After an addition, a replacement or a removal the other entries and all comments are as they were."""
    document = Document.parse(newline.join(lines))
    texts = list(document.texts)
    assert list(document.added(new).texts) == [*texts, new]
    for text in texts:
        assert list(document.replaced(text, new).texts) == [new if t == text else t for t in texts]
        removed = document.removed(text)
        assert list(removed.texts) == [t for t in texts if t != text]
        assert list(removed.added(text, at=texts.index(text)).texts) == texts
        outside = document.raw.count("<!-- c -->") - text.count("<!-- c -->") * sum(
            piece.text == text for piece in document.pieces
        )
        assert removed.raw.count("<!-- c -->") == outside


@given(st.text())
def test_cleaning_is_final(text: str) -> None:
    """Clean text can be encoded and is clean."""
    assert clean(clean(text)) == clean(text)
    clean(text).encode()


def test_halves_of_a_character() -> None:
    """Two halves become the character they are; a lone one becomes U+FFFD; control characters go."""
    assert clean("\ud83d\ude00 \ud83d a\x00b\x1b[1m\r\nc") == "😀 \ufffd ab[1m\nc"
