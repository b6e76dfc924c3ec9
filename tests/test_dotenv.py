"""``.env`` keeps every value and every line that is not changed."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dotenv as python_dotenv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes import dotenv
from hermes.errors import ConfigError, EditRefused, StoreUnavailable, UsageError
from tests.support import give_to_nobody, unprivileged

AWKWARD = [
    "a #b", " lead", "trail ", 'a"b', "a'b", "'", '"', "\\", "\\'", "a\\nb", "a\\", "=", "a=b=c", "#x",
    "x # y", "${HOME}", "$X`id`'", "é漢字🦜", "", " ", "\t", "export X=1", "\u00a0", "a\\\\b", "'a'", '"a"',
    "\u200b", "~",
]  # fmt: skip


def reference(path: Path) -> Mapping[str, str | None]:
    """What python-dotenv itself reads."""
    return python_dotenv.dotenv_values(path, interpolate=False)


@pytest.mark.parametrize("value", AWKWARD)
def test_awkward_value_round_trips(tmp_path: Path, value: str) -> None:
    """A value is read back as it was given, by us and by python-dotenv, alone and between other lines."""
    path = tmp_path / ".env"
    dotenv.set_values(path, {"KEY": value})
    assert dotenv.read(path) == dict(reference(path)) == {"KEY": value}
    path.write_text("A=1\nexport KEY=old # why\nB=2\n")
    dotenv.set_values(path, {"KEY": value})
    assert dotenv.read(path) == dict(reference(path)) == {"A": "1", "KEY": value, "B": "2"}
    assert path.read_text().endswith(" # why\nB=2\n")


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30).filter(
            lambda text: len(f"{text}.".splitlines()) == 1
        ),
        max_size=6,
    ),
    st.dictionaries(st.sampled_from("ABC"), st.text("ab\\'\"# $=", max_size=12), max_size=3),
)
def test_any_value_round_trips(first: dict[str, str], second: dict[str, str]) -> None:
    """Whatever is set, and set again over it, python-dotenv reads back."""
    text = dotenv._edited(dotenv._edited("", first), second)
    assert dict(python_dotenv.dotenv_values(stream=io.StringIO(text), interpolate=False)) == {
        **first,
        **second,
    }


@pytest.mark.parametrize(
    "value",
    ["x\nEVIL=1", "x\rEVIL=1", "x\n", "\n", "a\0b", "x\u2028EVIL=1", "x\x85EVIL=1", "x\x0bE=1", "\ud83d"],
)
def test_value_that_no_line_can_hold(tmp_path: Path, value: str) -> None:
    """Line breaks of every kind, NUL and half characters are refused: nothing is written or shown."""
    path = tmp_path / ".env"
    with pytest.raises(UsageError, match="the value of KEY") as caught:
        dotenv.set_values(path, {"GOOD": "1", "KEY": value})
    assert "EVIL" not in str(caught.value)
    assert not path.exists()


@pytest.mark.parametrize("key", ["", "A B", "1A", "A=B", "A\nB", "A-B", "É", "#A", "A\0"])
def test_bad_key(tmp_path: Path, key: str) -> None:
    """A key that is no name of a variable is refused."""
    with pytest.raises(UsageError, match="name of a variable"):
        dotenv.set_values(tmp_path / ".env", {key: "1"})
    assert not (tmp_path / ".env").exists()


def test_everything_else_stays(tmp_path: Path) -> None:
    """Only the changed line differs: comments, order, blank lines, odd lines, indentation and export stay."""
    path = tmp_path / ".env"
    path.write_text("# mine\n\n  A=1\nexport  B='two' # keep\n\nthis is no variable\nC\n'odd key'=x\nD=4")
    dotenv.set_values(path, {"B": "2 3", "E": "5"})
    assert path.read_text() == (
        "# mine\n\n  A=1\nexport  B='2 3' # keep\n\nthis is no variable\nC\n'odd key'=x\nD=4\nE=5\n"
    )
    dotenv.set_values(path, {"A": None, "D": None})
    assert (
        path.read_text() == "# mine\n\nexport  B='2 3' # keep\n\nthis is no variable\nC\n'odd key'=x\nE=5\n"
    )


def test_windows_line_ends_and_bom(tmp_path: Path) -> None:
    """CRLF and a byte order mark stay as they are, and new lines follow them."""
    path = tmp_path / ".env"
    path.write_bytes("\ufeffA=1\r\nB=2\r\n".encode())
    assert dotenv.read(path) == {"A": "1", "B": "2"}
    dotenv.set_values(path, {"A": "x y", "C": "3"})
    assert path.read_bytes() == "\ufeffA='x y'\r\nB=2\r\nC=3\r\n".encode()


def test_key_given_twice(tmp_path: Path) -> None:
    """The last line counts; setting or removing leaves no older line with an old secret behind."""
    path = tmp_path / ".env"
    path.write_text("K=old1\nX=1\nK=old2\n")
    assert dotenv.read(path)["K"] == "old2"
    dotenv.set_values(path, {"K": "new"})
    assert path.read_text() == "X=1\nK=new\n"
    path.write_text("K=old1\nX=1\nK=old2\n")
    dotenv.set_values(path, {"K": None})
    assert path.read_text() == "X=1\n"


def test_value_over_several_lines_can_be_replaced(tmp_path: Path) -> None:
    """A quoted value that somebody wrote over two lines is read, and replaced whole."""
    path = tmp_path / ".env"
    path.write_text('A="one\ntwo"\nB=2\n')
    assert dotenv.read(path)["A"] == "one\ntwo"
    dotenv.set_values(path, {"A": "1"})
    assert path.read_text() == "A=1\nB=2\n"


def test_variable_is_not_expanded(tmp_path: Path) -> None:
    """${X} is a text."""
    path = tmp_path / ".env"
    path.write_text("X=1\nY=${X}\nZ='$X'\n")
    assert dotenv.read(path) == {"X": "1", "Y": "${X}", "Z": "$X"}


def test_open_quote_is_reported_and_kept(tmp_path: Path) -> None:
    """A line with an open quote is reported with its number, and an edit that it would swallow is refused."""
    path = tmp_path / ".env"
    text = 'A=1\n\nB="open\n'
    path.write_text(text)
    assert [(p.line, p.fatal) for p in dotenv.problems(path)] == [(3, False)]
    dotenv.set_values(path, {"A": "2"})
    with pytest.raises(EditRefused, match=r"\.env"):
        dotenv.set_values(path, {"C": 'needs "double\\ quotes'})
    assert path.read_text() == 'A=2\n\nB="open\n'


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """In a comment they are kept; in a value they are an error with its line."""
    path = tmp_path / ".env"
    path.write_bytes(b"# caf\xe9\nA=1\n")
    dotenv.set_values(path, {"A": "2"})
    assert path.read_bytes() == b"# caf\xe9\nA=2\n"
    path.write_bytes(b"A=1\nB=caf\xe9\n")
    with pytest.raises(ConfigError) as caught:
        dotenv.read(path)
    assert caught.value.problems[0].line == 2
    path.write_bytes("A=1\n".encode("utf-16"))
    with pytest.raises(ConfigError):
        dotenv.read(path)


def test_private_from_birth_and_tightened(tmp_path: Path) -> None:
    """A new file is 0600; one that others could read is made private, and that is said."""
    path = tmp_path / ".env"
    assert dotenv.set_values(path, {"A": "1"}) == dotenv.Written(("A",), None)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert dotenv.set_values(path, {"A": "1"}) == dotenv.Written((), 0o644)
    assert path.stat().st_mode & 0o777 == 0o600
    assert dotenv.set_values(path, {"A": "1"}) == dotenv.Written((), None)


def test_missing_file_is_empty_and_not_made(tmp_path: Path) -> None:
    """Reading what is not there gives nothing and makes nothing."""
    assert dotenv.read(tmp_path / "gone" / ".env") == {}
    assert dotenv.problems(tmp_path / ".env") == []
    assert list(tmp_path.iterdir()) == []


def test_unreadable_is_not_empty(reachable: Path) -> None:
    """A file without permission is an error that names it, for reading and for writing; it stays as it is."""
    path = reachable / ".env"
    path.write_text("A=1\n")
    path.chmod(0)
    give_to_nobody(reachable)

    def act() -> None:
        with pytest.raises(StoreUnavailable, match="mode 0000"):
            dotenv.read(path)
        with pytest.raises(StoreUnavailable):
            dotenv.set_values(path, {"B": "2"})

    unprivileged(act)
    path.chmod(0o600)
    assert path.read_text() == "A=1\n"


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Twelve threads set a key each, and all are there."""
    path = tmp_path / ".env"
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: dotenv.set_values(path, {f"K{n}": str(n)}), range(12)))
    assert dotenv.read(path) == {f"K{n}": str(n) for n in range(12)}


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    "value", ["a #b", " x ", 'a"b', "it's", "$HOME", "back\\slash", "~", "*", "a;b", "é"]
)
def test_shell_reads_the_same(tmp_path: Path, value: str) -> None:
    """A person who sources the file in a shell gets the same value."""
    path = tmp_path / ".env"
    dotenv.set_values(path, {"KEY": value})
    shown = subprocess.run(
        ["sh", "-c", '. "$1"; printf %s "$KEY"', "sh", path], capture_output=True, check=True
    )
    assert shown.stdout.decode() == value
