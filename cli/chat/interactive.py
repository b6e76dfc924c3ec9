"""A conversation at a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hermes.cli.chat.opening import conversation
from hermes.cli.chat.slash import Slash
from hermes.cli.output import fail, styled, write
from hermes.cli.state import State
from hermes.conversation import Conversation
from hermes.errors import HermesError
from hermes.files import private_dir
from hermes.locks import PRIVATE_FILE
from hermes.paths import ProfilePaths

Ask = Callable[[str], str]
"""Asks the person for the next message; the text stands there already, to be changed or sent again."""


def converse(state: State, session: str | None, *, go_on: bool) -> None:
    """Talk until the person leaves. Ctrl-C stops an answer, or empties the line; Ctrl-D leaves."""
    out = _Out()
    with (
        conversation(state, session, out.text, out.note, go_on=go_on) as talk,
        _asking(state.profile_ref().paths) as ask,
    ):
        if not state.quiet:
            write(styled(f"session {talk.session_id}; /help says what can be done, Ctrl-D leaves", "dim"))
        slash = Slash(talk)
        draft = ""
        while True:
            try:
                text = ask(draft).strip()
            except EOFError:
                return
            except KeyboardInterrupt:
                draft = ""
                continue
            draft = "" if not text else _one(talk, slash, text, out)


def _one(talk: Conversation, slash: Slash, text: str, out: _Out) -> str:
    """One message or command; what shall stand at the next prompt."""
    try:
        if text.startswith("/") and slash.run(text):
            return ""
        told = talk.say(text)
    except HermesError as exc:
        out.line()
        fail(exc, as_json=False)
        return "" if text.startswith("/") else text  # what was said is there to be sent again
    except KeyboardInterrupt:
        out.line()
        return ""
    out.line()
    if told.state == "interrupted":
        out.note("stopped; this turn is not remembered")
    elif not told.durable:
        out.note("this turn is not on the disk yet: hermes memory status")
    return ""


class _Out:
    """The terminal: pieces of an answer as they come, remarks on lines of their own."""

    def __init__(self) -> None:
        self._in_line = False

    def text(self, piece: str) -> None:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(piece.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
        self._in_line = not piece.endswith("\n")

    def note(self, line: str) -> None:
        self.line()
        write(styled(line, "dim"))

    def line(self) -> None:
        if self._in_line:
            write("")
            self._in_line = False


@contextlib.contextmanager
def _asking(paths: ProfilePaths) -> Iterator[Ask]:
    """How the person is asked: with a line editor where the terminal can, else plainly."""
    if os.environ.get("TERM", "dumb") == "dumb":
        yield lambda _: input("> ")
        return
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory
    from prompt_toolkit.patch_stdout import patch_stdout

    try:
        history: Any = FileHistory(str(_history_file(paths)))
    except (OSError, HermesError):  # a home that cannot be written: this conversation remembers its own lines
        history = InMemoryHistory()
    session: Any = PromptSession(history=history, multiline=True, key_bindings=_keys())

    def ask(draft: str) -> str:
        with patch_stdout(raw=True):
            return str(session.prompt("> ", default=draft, prompt_continuation="  "))

    yield ask


def _history_file(paths: ProfilePaths) -> Any:
    """The file of what was typed, private from birth."""
    path = private_dir(paths.home) / "chat_history"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))
    return path


def _keys() -> Any:
    """Enter sends; Alt-Enter and Ctrl-J begin a new line."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return keys
