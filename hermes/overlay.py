"""The environment of one profile put over that of the process, for plugins of others that must run in it.

``os.environ`` belongs to the whole process: two profiles cannot have theirs in it at once. A lease makes sure
of that. Code of hermes reads no secrets from there; a plugin in a process of its own needs no lease.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import attrs

from hermes.errors import ProfileBusy

_NOT_FROM_DOTENV = re.compile(r"PATH|PYTHON.*|LD_.*|DYLD_.*|HERMES_HOME|HERMES_PROFILE", re.IGNORECASE)
_NAME = re.compile(r"[^=\0]+")

Quiesce = Callable[[], AbstractContextManager[object]]


class Variables(NamedTuple):
    """What a plugin of a profile finds in its environment, and the names in ``.env`` that were not let in."""

    values: dict[str, str]
    ignored: tuple[str, ...]


def variables_for(profile: str, home: Path, dotenv: Mapping[str, str]) -> Variables:
    """The variables of *profile*: its ``.env``, ``HERMES_HOME`` and ``HERMES_PROFILE``.

    What decides which code runs is not taken from a ``.env``: ``PATH``, ``PYTHON*``, ``LD_*``, nor a home.
    """
    ignored = tuple(name for name in dotenv if _NOT_FROM_DOTENV.fullmatch(name) or not _NAME.fullmatch(name))
    values = {name: value for name, value in dotenv.items() if name not in ignored}
    return Variables({**values, "HERMES_HOME": str(home), "HERMES_PROFILE": profile}, ignored)


@attrs.define(eq=False)
class EnvironmentLease:
    """The right of one open profile to have its variables in ``os.environ``; a context manager.

    One profile has it at a time. The same profile may take it again inside. Another one gets it only from
    inside the first: *opener* is the lease of the profile that opened it, and *quiesce* of that lease stops
    the opener's workers; its variables are taken off meanwhile and put back after. Anything else raises
    ProfileBusy.
    """

    profile: str
    home: Path
    dotenv: Mapping[str, str] = attrs.field(repr=False)
    opener: EnvironmentLease | None = attrs.field(default=None, repr=False)
    quiesce: Quiesce | None = attrs.field(default=None, repr=False)
    """Stops the workers of this profile: entering returns when they are still, leaving lets them go on."""
    kept: list[str] = attrs.field(init=False, factory=list)
    """Variables that somebody changed while they were ours, and that were left as they are."""
    _entered: list[_Layer] = attrs.field(init=False, factory=list, repr=False)

    @property
    def ignored(self) -> tuple[str, ...]:
        """The names in ``.env`` that are not let in; for a report."""
        return variables_for(self.profile, self.home, self.dotenv).ignored

    def __enter__(self) -> EnvironmentLease:
        with _stack.guard:
            top = _stack.top()
            if top is not None and top.lease.home == self.home and not _stack.switching:
                top.depth += 1
                self._entered.append(top)
                return self
            if _stack.switching or not self._may_follow(top):
                holder = top.lease.profile if top else self.profile
                raise ProfileBusy(holder, doing=f"the environment of {self.profile!r} must wait")
            _stack.switching = True  # the opener's workers may need the guard to come to rest
        try:
            self._entered.append(self._put_over(top))
        finally:
            _stack.switching = False
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _stack.guard:
            layer = self._entered.pop()
            layer.depth -= 1
            if layer.depth:
                return
            if _stack.switching or _stack.top() is not layer:  # off already, and not put back any more
                raise ProfileBusy(self.profile, doing="a profile that it opened is still open")
            resume = _stack.pop()
        for paused in resume:
            paused.__exit__(None, None, None)

    def _may_follow(self, top: _Layer | None) -> bool:
        if top is None:
            return True
        opened_by_it = self.opener is not None and self.opener.home == top.lease.home
        return opened_by_it and top.lease.quiesce is not None

    def _put_over(self, below: _Layer | None) -> _Layer:
        values = variables_for(self.profile, self.home, self.dotenv).values
        with ExitStack() as undo:
            paused = None
            if below is not None and below.lease.quiesce is not None:
                paused = below.lease.quiesce()
                undo.enter_context(paused)
            with _stack.guard:
                layer = _Layer(self, values, paused)
                _stack.push(layer)
            undo.pop_all()
        return layer


@attrs.define(eq=False, repr=False)
class _Layer:
    """Variables that are, or were, in ``os.environ``, and what they hid."""

    lease: EnvironmentLease
    values: dict[str, str]
    paused: AbstractContextManager[object] | None
    """Goes on with the workers of the layer below when it is left."""
    depth: int = 1
    hidden: dict[str, str | None] = attrs.field(factory=dict)

    def put_on(self) -> None:
        for name, value in self.values.items():
            before = os.environ.get(name)
            os.environ[name] = value
            self.hidden[name] = before

    def take_off(self) -> None:
        """Key by key, where the value is still ours: what a plugin set itself is not ours to undo."""
        while self.hidden:
            name, before = self.hidden.popitem()
            if os.environ.get(name) != self.values[name]:
                self.lease.kept.append(name)
            elif before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


class _Stack:
    """Who has the environment of this process, and whose it was before; only the top is in ``os.environ``."""

    def __init__(self) -> None:
        self.guard = threading.RLock()
        self.switching = False
        self._layers: list[_Layer] = []

    def top(self) -> _Layer | None:
        return self._layers[-1] if self._layers else None

    def push(self, layer: _Layer) -> None:
        below = self.top()
        if below is not None:
            below.take_off()
        try:
            layer.put_on()
        except BaseException:
            layer.take_off()
            if below is not None:
                below.put_on()
            raise
        self._layers.append(layer)

    def pop(self) -> list[AbstractContextManager[object]]:
        """Take the top off, put back what is below; returns what lets the workers there go on."""
        resume = []
        layer = self._layers.pop()
        layer.take_off()
        resume.append(layer.paused)
        while self._layers and self._layers[-1].depth == 0:  # ended before the profile that it opened
            resume.append(self._layers.pop().paused)
        if self._layers:
            self._layers[-1].put_on()
        return [paused for paused in resume if paused is not None]


_stack = _Stack()  # the environment is one for the process, so what says who has it is one as well
