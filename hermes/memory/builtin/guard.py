"""What keeps a model from going round in circles within one turn."""

from __future__ import annotations

import threading

from hermes.errors import EntryRefused
from hermes.memory.builtin.entries import Document, shown
from hermes.memory.builtin.store import Guard
from hermes.memory.builtin.values import Target

MAX_FAILURES = 3
"""Failed writes in a turn, after which the model is told to leave it."""


class TurnGuard:
    """Counts the failures of a turn and notices a text that goes and comes back and is to go again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self._removed: set[tuple[Target, str]] = set()
        self._stopped: set[tuple[Target, str]] = set()

    def reset(self) -> None:
        """A new turn begins."""
        with self._lock:
            self._failures = 0
            self._removed.clear()
            self._stopped.clear()

    def failed(self) -> int:
        """Count one failed write; how many there have been in this turn."""
        with self._lock:
            self._failures += 1
            return self._failures

    def of(self, target: Target) -> Guard:
        """What looks on while *target* is written."""
        return _TargetGuard(self, target)

    def check(self, gone: set[tuple[Target, str]]) -> None:
        """Raises EntryRefused where one of *gone* was removed in this turn before."""
        with self._lock:
            if again := gone & self._removed:
                self._stopped |= again
                raise _circle([text for _, text in again])

    def removed(self, gone: set[tuple[Target, str]]) -> None:
        """Note that *gone* are removed."""
        with self._lock:
            self._removed |= gone

    def check_stopped(self, target: Target, content: str) -> None:
        """Raises EntryRefused where *content* was found going round in circles in this turn."""
        with self._lock:
            if (target, content) in self._stopped:
                raise _circle([content])


class _TargetGuard:
    def __init__(self, turn: TurnGuard, target: Target) -> None:
        self._turn = turn
        self._target = target

    def check(self, before: Document, after: Document) -> None:
        self._turn.check(self._gone(before, after))

    def committed(self, before: Document, after: Document) -> None:
        self._turn.removed(self._gone(before, after))

    def _gone(self, before: Document, after: Document) -> set[tuple[Target, str]]:
        now = set(after.texts)
        return {(self._target, text) for text in before.texts if text not in now}


def _circle(texts: list[str]) -> EntryRefused:
    return EntryRefused(
        "this entry was removed and put back in this turn already; it stays as it is now",
        kind="repeated",
        entries=list(map(shown, texts)),
        next_step="leave it and answer the user",
    )
