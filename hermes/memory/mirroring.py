"""What a call of the built-in ``memory`` tool changed, for those who are told of it."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hermes.memory.builtin.tool import changes_of
from hermes.memory.lanes import describe
from hermes.memory.signatures import shape_of

_ACTIONS = frozenset({"add", "replace", "remove"})
_REMEMBERED = 16

Write = tuple[str, str, str, dict[str, Any]]
"""Action, target, content, metadata."""


def writes_of(tool_result: Any, tool_args: Any) -> list[Write]:
    """The changes that were made: none for a call that failed or waits for approval.

    A result that is not one of our own tool's is read from the arguments.
    """
    reply = _parsed(tool_result)
    if not isinstance(reply, Mapping) or reply.get("success") is not True or reply.get("staged"):
        return []
    if "results" in reply:
        changes = changes_of(json.dumps(reply, default=str), tool_args)
        return [(c.action, c.target, c.content, dict(c.metadata())) for c in changes]
    return list(_from_args(_parsed(tool_args)))


def metadata_from(build: Callable[..., Any] | None, change: Write, log: logging.Logger) -> dict[str, Any]:
    """What *build* says of the write, called without arguments or, if it takes one, with the arguments.

    It is the host's own: where it raises, that is logged and it says nothing.
    """
    if build is None:
        return {}
    action, target, content, metadata = change
    facts = {"action": action, "target": target, "content": content, **metadata}
    try:
        given = build(facts) if shape_of(build).required else build()
    except Exception as exc:  # noqa: BLE001 - whatever the host raises, the write is told of
        log.warning("the metadata of a memory write could not be built: %s", describe(exc))
        return {}
    return dict(given) if isinstance(given, Mapping) else {}


class Told:
    """Tool results that were mirrored already, so that a host that tells of them too does not do it twice."""

    def __init__(self) -> None:
        self._results: deque[str] = deque(maxlen=_REMEMBERED)

    def note(self, tool_result: Any) -> None:
        """*tool_result* has been mirrored."""
        self._results.append(str(tool_result))

    def take(self, tool_result: Any) -> bool:
        """True, once, if *tool_result* has been mirrored."""
        try:
            self._results.remove(str(tool_result))
        except ValueError:
            return False
        return True


def _from_args(args: Any) -> Iterator[Write]:
    if not isinstance(args, Mapping):
        return
    operations = args.get("operations")
    for operation in operations if isinstance(operations, list) and operations else [args]:
        if not isinstance(operation, Mapping):
            continue
        action, target = operation.get("action"), operation.get("target", args.get("target", "memory"))
        old = operation.get("old_text")
        content = operation.get("content") or (old if action == "remove" else "")
        if action in _ACTIONS and isinstance(target, str) and isinstance(content, str):
            yield str(action), target, content, {"old_text": old} if isinstance(old, str) and old else {}


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None
