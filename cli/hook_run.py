"""``hermes hooks run``: one event, as quickly as can be. It is called with every prompt and imports no parser."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hermes.cli.output import note, write
from hermes.cli.state import State
from hermes.errors import HermesError, UsageError

FLUSH_SECONDS = 3.0
"""Seconds for handing the turn on; what takes longer is in the journal for the next time."""


def as_installed(words: Sequence[str]) -> tuple[State, str] | None:
    """What *words* say, if they are exactly what ``hermes hooks install`` has a client call."""
    match words:
        case ["--home", home, "--profile", profile, "hooks", "run", event] if event[:1] != "-":
            return State(home=Path(home), profile=profile), event
        case _:
            return None


def handle(state: State, event: str) -> None:
    """Handle the event of Claude Code that comes in at standard input. Whatever goes wrong, it does not raise."""
    try:
        answer = _handled(state, event)
    except Exception as exc:  # noqa: BLE001 - whatever goes wrong here must not stop the person's work
        _survived(state, event, exc)
    else:
        if answer is not None:
            write(json.dumps(answer, ensure_ascii=True))


def _handled(state: State, name: str) -> dict[str, Any] | None:
    given = json.loads(sys.stdin.buffer.read() or b"{}")
    if not isinstance(given, dict):
        raise UsageError(f"expected an object, found {type(given).__name__}")
    from hermes.clients.hook_events import CLIENT, Events

    with state.open() as me:
        memory = me.memory_manager()
        events = Events(memory, me.journal(), me.paths().home / "hooks" / CLIENT, me.log())
        if name == "UserPromptSubmit":
            return events.prompt(given)
        act = {"Stop": events.stop, "SessionEnd": events.end}.get(name)
        if act is not None and act(given) is not None:
            memory.flush_pending(FLUSH_SECONDS)
    return None


def _survived(state: State, event: str, exc: Exception) -> None:
    """Say what went wrong in the log of the profile, and here for who tries it by hand."""
    from hermes.memory.lanes import describe
    from hermes.memory.log import profile_logger

    reasons = exc.exceptions if isinstance(exc, ExceptionGroup) else [exc]
    said = f"hook {event}: {'; '.join(map(describe, reasons))}"
    note(state, f"hermes: {said}")
    try:
        profile = state.profile_ref()
        if profile.home.is_dir():
            log = profile_logger(profile.paths.logs, profile.name)
            log.propagate = False
            log.warning(said)
            log.handlers[0].close()
    except HermesError:
        pass  # there is no profile whose log it could be in
