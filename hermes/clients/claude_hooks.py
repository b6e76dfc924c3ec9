"""The hooks of Claude Code in its settings file: ours put in and taken out, those of others left alone.

``hooks`` in that file maps an event to groups, each with the commands that it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.clients import jsonc
from hermes.clients.files import Change, changed

EVENTS: Mapping[str, int] = {"UserPromptSubmit": 5, "Stop": 30, "SessionEnd": 10}
"""The events that are listened to, and how many seconds the command may take.

None is left to run behind the client's back: the end of a session must find its last turn kept.
"""
_RUN = ("hooks", "run")


def install(path: Path, command: Sequence[str]) -> Change:
    """The change that has *command* run for each event, in place of an older one of ours. Raises StoreUnavailable."""
    program, *front = command

    def edit(text: str) -> str:
        for event, seconds in EVENTS.items():
            args = [*front, *_RUN, event]
            ours = {"type": "command", "command": program, "args": args, "timeout": seconds}
            groups = _groups(text, event)
            places = [*_places(groups, event)]
            for place in places[:0:-1]:
                text = _without(text, place)
            if places:
                text = jsonc.put(text, places[0], ours)
            elif groups is None:
                text = jsonc.put(text, ["hooks", event], [{"hooks": [ours]}])
            else:
                text = jsonc.put(text, ["hooks", event, len(groups)], {"hooks": [ours]})
        return text

    return changed(path, edit)


def remove(path: Path) -> Change:
    """The change that takes our hooks out. Raises StoreUnavailable."""

    def edit(text: str) -> str:
        for event in EVENTS:
            for place in [*_places(_groups(text, event), event)][::-1]:
                text = _without(text, place)
        return text

    return changed(path, edit)


def installed(path: Path) -> list[str]:
    """The events that our command runs for. Raises StoreUnavailable."""
    found: list[str] = []

    def look(text: str) -> str:
        found.extend(event for event in EVENTS if any(_places(_groups(text, event), event)))
        return text

    changed(path, look)
    return found


def _without(text: str, place: Sequence[jsonc.Step]) -> str:
    """*text* without the command at *place*, and without the group, event and key that are empty for that."""
    text = jsonc.remove(text, place)
    for depth, outer in ((4, 3), (2, 2), (1, 1)):
        inside = jsonc.loads(text)
        for key in place[:depth]:
            inside = inside[key]
        if inside:
            break
        text = jsonc.remove(text, place[:outer])
    return text


def _groups(text: str, event: str) -> list[Any] | None:
    """What runs for *event*; None where nothing is said of it. Raises ValueError for what is no such file."""
    found: Any = jsonc.loads(text) if text.strip() else {}
    for key, kind in (("", dict), ("hooks", dict), (event, list)):
        found = found.get(key) if key else found
        if found is None:
            return None
        if not isinstance(found, kind):
            raise jsonc.NotJson(f"{key or 'the file'} holds no {'object' if kind is dict else 'list'}")
    groups: list[Any] = found
    return groups


def _places(groups: list[Any] | None, event: str) -> Iterator[list[jsonc.Step]]:
    """Where our commands stand."""
    for number, group in enumerate(groups or ()):
        commands = group.get("hooks") if isinstance(group, dict) else None
        for place, command in enumerate(commands if isinstance(commands, list) else ()):
            if _is_ours(command, event):
                yield ["hooks", event, number, "hooks", place]


def _is_ours(command: Any, event: str) -> bool:
    args = command.get("args") if isinstance(command, dict) else None
    return isinstance(args, list) and "--profile" in args and args[-3:] == [*_RUN, event]
