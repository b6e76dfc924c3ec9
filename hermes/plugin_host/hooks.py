"""The hooks of plugins that this host fires: each call on a worker, under a limit, and nothing gets out.

``on_session_start``   a session begins
``on_session_end``     the session ends
``pre_tool_call``      tool_name, args
``post_tool_call``     tool_name, args, result
``pre_llm_call``       user_message, conversation_history, model; what it answers is told to the model
``post_llm_call``      user_message, assistant_response, conversation_history, model

A callback is given those of them that it accepts, and ``session_id`` and ``platform``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from hermes.memory.lanes import CallStillRunning, Lane, describe
from hermes.plugin_host.context import FIRED, Registered

_FAREWELL = 0.2
"""Seconds that the worker of a hook has for ending when it is idle."""


class Source(Protocol):
    """Where hooks are: what one plugin has registered, here or in a process of its own."""

    @property
    def hook_names(self) -> Collection[str]:
        """The hooks that have a callback."""

    def call_hook(self, hook: str, facts: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Call the callbacks of *hook*: their answers, and what they raised."""


class Here:
    """The hooks of a plugin that runs in this process."""

    def __init__(self, registered: Registered) -> None:
        self._registered = registered

    @property
    def hook_names(self) -> Collection[str]:
        """The hooks that have a callback."""
        return self._registered.hooks.keys()

    def call_hook(self, hook: str, facts: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
        """Call the callbacks of *hook*: their answers, and what they raised."""
        return self._registered.fire(hook, facts)


class Hooks:
    """The hooks of all plugins that a profile runs."""

    def __init__(self, log: logging.Logger | None = None) -> None:
        self._log = log or logging.getLogger("hermes.memory")
        self._sources: list[tuple[str, Source, Lane]] = []
        self._noted: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        self._posted: deque[tuple[str, Mapping[str, Any], float]] = deque()
        self._poster: threading.Thread | None = None

    def add(self, plugin: str, source: Source) -> None:
        """Fire the hooks of *source* from now on, in the place of those that *plugin* had before."""
        for name, _, lane in self._sources:
            if name == plugin:
                lane.close()
        kept = [held for held in self._sources if held[0] != plugin]
        self._sources = [*kept, (plugin, source, Lane(f"hermes-{plugin}-hooks"))]

    def wanted(self, hook: str) -> bool:
        """True if a plugin has a callback for *hook*."""
        return any(hook in source.hook_names for _, source, _ in self._sources)

    def fire(self, hook: str, facts: Mapping[str, Any], *, within: float) -> list[Any]:
        """Call every callback of *hook*, those of one plugin within so many seconds; what they answer.

        Raises nothing that a plugin does: it is logged, as a warning the first time.
        """
        if hook not in FIRED:
            raise ValueError(f"{hook!r} is no hook of this host")
        answers: list[Any] = []
        for plugin, source, lane in self._sources:
            if hook in source.hook_names:
                try:
                    given, errors = lane.call(hook, source.call_hook, (hook, facts), limit=within)
                except Exception as exc:  # noqa: BLE001 - whatever a plugin raises, the turn goes on
                    self._note(plugin, hook, describe(exc), again=isinstance(exc, CallStillRunning))
                else:
                    answers += given
                    for error in errors:
                        self._note(plugin, hook, error)
        return answers

    def post(self, hook: str, facts: Mapping[str, Any], *, within: float) -> None:
        """Call every callback of *hook* and wait for none: one hook after the other, in the background."""
        with self._lock:
            self._posted.append((hook, facts, within))
            if self._poster is None:
                self._poster = threading.Thread(target=self._post_all, name="hermes-hooks", daemon=True)
                self._poster.start()

    def _post_all(self) -> None:
        while True:
            with self._lock:
                if not self._posted:
                    self._poster = None
                    return
                hook, facts, within = self._posted.popleft()
            self.fire(hook, facts, within=within)

    def drain(self, seconds: float) -> bool:
        """Wait until what was posted is done, *seconds* at most; whether it is."""
        if (poster := self._poster) is not None:
            poster.join(seconds)
        return self._poster is None

    def close(self) -> None:
        """Fire no more but what is posted, for a moment; a call that is running is left alone."""
        self.drain(_FAREWELL)
        sources, self._sources = self._sources, []
        for _, _, lane in sources:
            lane.close()
        for _, _, lane in sources:
            lane.join(_FAREWELL)

    def _note(self, plugin: str, hook: str, error: str, *, again: bool = False) -> None:
        mark = (plugin, hook, error.partition(":")[0])
        level = logging.DEBUG if again or mark in self._noted else logging.WARNING
        self._noted.add(mark)
        self._log.log(level, "plugin %r: hook %s: %s", plugin, hook, error)


def context_of(answers: Iterable[Any]) -> str:
    """What plugins answered to ``pre_llm_call``, as text for the model: texts, or what is under ``context``."""
    texts = (answer.get("context") if isinstance(answer, Mapping) else answer for answer in answers)
    return "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
