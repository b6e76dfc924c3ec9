"""Asking a person at a terminal: a hidden text, and one of several. Without a terminal, lines are read.

Keys that are no text come as escape sequences; they never become part of an answer.
"""

from __future__ import annotations

import codecs
import os
import select
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_CSI = {"A": "up", "B": "down", "H": "home", "F": "end", "200~": "paste", "201~": "pasted"}
_ESCAPE_SECONDS = 0.05
"""What follows an escape character sooner than this belongs to it."""
_LONGEST_SEQUENCE = 64
_HINT = "up and down move, Enter chooses, Esc leaves it"


def ask_secret(prompt: str, *, mask: str = "*") -> str:
    """One line, each character shown as *mask*. Ctrl-U starts again.

    Raises EOFError at the end of the input, KeyboardInterrupt for Ctrl-C.
    """
    if not _at_terminal():
        return _line(prompt)
    typed: list[str] = []
    try:
        with _keys() as keys:
            _write(prompt + _PASTE_ON)  # what is typed as soon as it is read is not shown any more
            for key in keys:
                if key == "enter":
                    return "".join(typed)
                if key == "end-of-input" and not typed:
                    raise EOFError
                shown = len(typed)
                _edit(typed, key)
                _write("\b \b" * (shown - len(typed)) * len(mask) + mask * (len(typed) - shown))
    finally:
        _write(_PASTE_OFF + "\r\n")
    raise EOFError


def choose(title: str, rows: Sequence[str], selected: int, cancelled: int) -> int:
    """The number of the row that the person chooses, *selected* first; *cancelled* where they choose none.

    Raises KeyboardInterrupt for Ctrl-C.
    """
    if not rows:
        return cancelled
    at = min(max(selected, 0), len(rows) - 1)
    if not _at_terminal():
        return _choose_by_number(title, rows, at, cancelled)
    drawn = 0
    _write(_HIDE_CURSOR)
    try:
        with _keys() as keys:
            drawn = _draw(title, rows, at, drawn)
            for key in keys:
                if key in ("enter", " "):
                    return at
                if key in ("escape", "q", "end-of-input"):
                    return cancelled
                at = _moved(at, key, len(rows))
                drawn = _draw(title, rows, at, drawn)
    finally:
        _write(_SHOW_CURSOR)
    return cancelled


# -- what is shown ---------------------------------------------------------------------------------------


def _draw(title: str, rows: Sequence[str], at: int, drawn: int) -> int:
    """Draw the list in the place of the *drawn* lines above; how many lines it took."""
    columns, lines = shutil.get_terminal_size()
    heading = [_fitting(line, columns) for line in title.splitlines()]
    room = max(lines - len(heading) - 2, 1)
    first = min(max(at - room // 2, 0), max(len(rows) - room, 0))
    shown = [
        _fitting(f"{'→' if number == at else ' '} {'(•)' if number == at else '( )'} {row}", columns)
        for number, row in enumerate(rows[first : first + room], first)
    ]
    text = [*heading, *shown, _fitting(_HINT, columns)]
    back = f"\x1b[{drawn}A\r\x1b[J" if drawn else ""
    _write(back + "".join(f"{line}\r\n" for line in text))
    return len(text)


def _fitting(line: str, columns: int) -> str:
    """*line* without control characters, cut to one line of the terminal."""
    room, kept = max(columns - 1, 1), []
    for char in line.expandtabs(2):
        if unicodedata.category(char) == "Cc":
            continue
        room -= 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if room < 0:
            break
        kept.append(char)
    return "".join(kept)


def _moved(at: int, key: str, count: int) -> int:
    match key:
        case "up" | "k":
            return (at - 1) % count
        case "down" | "j":
            return (at + 1) % count
        case "home":
            return 0
        case "end":
            return count - 1
    return at


def _edit(typed: list[str], key: str) -> None:
    """Take one key into what was typed."""
    if key == "backspace":
        del typed[-1:]
    elif key == "start-again":
        typed.clear()
    elif len(key) == 1:
        typed.append(key)


# -- without a terminal ----------------------------------------------------------------------------------


def _choose_by_number(title: str, rows: Sequence[str], at: int, cancelled: int) -> int:
    _write("".join(f"{line}\n" for line in [title, *(f"  {n}. {row}" for n, row in enumerate(rows, 1))]))
    while True:
        try:
            answer = _line(f"1-{len(rows)} [{at + 1}]: ").strip()
        except EOFError:
            return cancelled
        if not answer:
            return at
        if answer.isdecimal() and 1 <= int(answer) <= len(rows):
            return int(answer) - 1
        _write(f"{answer!r} is none of them\n")


def _line(prompt: str) -> str:
    _write(prompt)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


# -- keys ------------------------------------------------------------------------------------------------


def _at_terminal() -> bool:
    return os.name == "posix" and sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def _keys() -> Iterator[Iterator[str]]:
    """The keys that are pressed, each a character or a name, while nothing is echoed."""
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd, termios.TCSADRAIN)
        yield _Reader(fd).keys()
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


class _Reader:
    """Makes keys of the bytes that a terminal sends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def keys(self) -> Iterator[str]:
        """The keys, until the input ends."""
        pasting = False
        while char := self._char():
            key = self._escape() if char == "\x1b" else _KEYS.get(char, char)
            if key in ("paste", "pasted"):
                pasting = key == "paste"
            elif len(key) > 1:
                if not pasting:  # a line break in what was pasted answers nothing
                    yield key
            elif unicodedata.category(key) != "Cc":
                yield key

    def _char(self, seconds: float | None = None) -> str:
        """The next character; empty at the end, or when none came within *seconds*."""
        char = ""
        while not char:
            if seconds is not None and not select.select([self._fd], [], [], seconds)[0]:
                return ""
            byte = os.read(self._fd, 1)
            if not byte:
                return ""
            char = self._decoder.decode(byte)
        return char

    def _escape(self) -> str:
        """What an escape character begins: the name of a key, ``escape`` alone, or something of no meaning."""
        follows = self._char(_ESCAPE_SECONDS)
        match follows:
            case "":
                return "escape"
            case "[":
                return _CSI.get(self._until_final(), "unknown")
            case "O":
                return _CSI.get(self._char(_ESCAPE_SECONDS), "unknown")
            case "]" | "P" | "X" | "^" | "_":
                self._skip_string()
        return "unknown"

    def _until_final(self) -> str:
        text = ""
        while len(text) < _LONGEST_SEQUENCE and (char := self._char(_ESCAPE_SECONDS)):
            text += char
            if "@" <= char <= "~":
                break
        return text

    def _skip_string(self) -> None:
        last = ""
        while char := self._char(_ESCAPE_SECONDS):
            if char == "\x07" or (last == "\x1b" and char == "\\"):
                return
            last = char


_KEYS = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x04": "end-of-input",
    "\x15": "start-again",
}
