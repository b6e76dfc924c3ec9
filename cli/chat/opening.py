"""A conversation of the profile acted on, opened for one command and closed whatever ends it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from hermes.cli.chat import wanted_session
from hermes.cli.state import State
from hermes.context.choosing import choose
from hermes.conversation import Conversation
from hermes.conversation.conversation import Screen

Say = Callable[[str], None]


def _screen(wanted: str, text: Say, note: Say) -> Screen:
    screen = Screen(text, note)
    if wanted != "off":
        screen = attrs.evolve(screen, memory=note)
    return attrs.evolve(screen, tool=lambda name: note(f"{name} ...")) if wanted == "verbose" else screen


class Terminated(SystemExit):
    """SIGTERM: ends the program by the way it always ends, so that nothing is lost."""


@contextlib.contextmanager
def conversation(
    state: State, session: str | None, text: Say, note: Say, *, go_on: bool
) -> Iterator[Conversation]:
    """The conversation, started; its session is ended and the memory shut down at the end of the block.

    Answers go to *text*, and as much else to *note* as ``display.memory_notifications`` wants.
    """
    with _terminated_cleanly(), state.open() as me:
        settings = me.settings()
        model = me.model()
        screen = _screen(settings.display.memory_notifications, text, note)
        model.told = note
        model.preload()
        wanted = wanted_session(me, session, go_on=go_on)
        talk = Conversation(
            memory=me.memory_manager(),
            sessions=me.sessions(),
            model=model,
            engine=choose(settings.context.engine, me.plugins(), model.ask, note),
            nudge_every=settings.memory.nudge_interval,
            idle=settings.context.idle,
            screen=screen,
            log=me.log(),
        )
        reason = "exit"
        try:
            talk.start(wanted, cwd=os.getcwd())  # noqa: PTH109 - a text for the providers
            yield talk
        except Terminated:
            reason = "terminated"
            raise
        finally:
            talk.close(reason)


@contextlib.contextmanager
def _terminated_cleanly() -> Iterator[None]:
    def stop(number: int, _: Any) -> None:
        raise Terminated(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
