"""``hermes chat``: a conversation with a model that remembers."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from hermes.cli.state import State, current
from hermes.errors import NotFound, UsageError


def chat(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[MESSAGE]", help="What you say; without it you are asked.")
    ] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="What you say.")] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Go on in this session.")
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Go on in the last session.")] = False,
) -> None:
    """Talk with a model that remembers: one answer, or a conversation at a terminal.

    With a message, or with text on standard input, it answers once. At a terminal it goes on until you leave
    with Ctrl-D; /help lists what can be done there. The model is set with model.base_url and model.name.
    """
    state = current(ctx)
    said = _said(words, message)
    if session and go_on:
        raise UsageError("--session and --continue cannot both be given")
    if said is None and sys.stdin.isatty() and sys.stdout.isatty() and not state.json:
        from hermes.cli.chat.interactive import converse

        converse(state, session, go_on=go_on)
        return
    from hermes.cli.chat.oneshot import answer

    text = sys.stdin.read() if said is None else said
    if not text.strip():
        raise UsageError("there is nothing to say", next_step='hermes chat "your question"')
    raise typer.Exit(answer(state, text, session, go_on=go_on))


def _said(words: list[str] | None, message: str | None) -> str | None:
    if words and message is not None:
        raise UsageError("say it once: as words or with --message")
    said = " ".join(words) if words else message
    return None if said == "-" else said


def wanted_session(me: Any, session: str | None, *, go_on: bool) -> str:
    """The session to go on in; empty for a new one. Raises NotFound where there is none to go on in."""
    if session:
        return str(me.sessions().get(session).id)
    if not go_on:
        return ""
    last = me.sessions().listing(limit=1)
    if not last:
        raise NotFound("there is no session to go on in", next_step="hermes chat begins one")
    return str(last[0].id)


__all__ = ["State", "chat", "wanted_session"]
