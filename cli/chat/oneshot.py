"""One answer: for a question on the command line, and for programs."""

from __future__ import annotations

import sys

from hermes.cli.chat.opening import conversation
from hermes.cli.output import emit, note, styled, write
from hermes.cli.state import State


def answer(state: State, text: str, session: str | None, *, go_on: bool) -> int:
    """Say *text*, print the answer as it arrives (with ``--json`` at its end), and return the exit code."""
    notes: list[str] = []

    def remark(line: str) -> None:
        notes.append(line)
        note(state, styled(line, "dim", sys.stderr))

    def show(piece: str) -> None:
        if not state.json:
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(piece.encode(encoding, "backslashreplace").decode(encoding))
            sys.stdout.flush()

    with conversation(state, session, show, remark, go_on=go_on) as talk:
        told = talk.say(text)
        session_id = talk.session_id
    if not state.json and told.text:
        write("")
    data = {
        "session_id": session_id,
        "turn": told.number,
        "answer": told.text,
        "state": told.state,
        "recall": told.recall,
        "durable": told.durable,
        "usage": told.usage,
        "notes": notes,
    }
    emit(state, data, "")
    return 130 if told.state == "interrupted" else 0
