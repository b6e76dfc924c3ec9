"""A worker that is always there: started again when it has ended, and told again for which session it is."""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import HermesError, ProviderUnavailable
from hermes.memory.lanes import CallFailed, LimitSet, describe
from hermes.plugin_host.host import Host
from hermes.plugin_host.loading import LoadFailed
from hermes.plugin_host.worker.child import CALLBACK, TURN
from hermes.plugin_host.worker.failures import PluginError, unpack
from hermes.plugin_host.worker.process import PATIENCE, Process, questions_to
from hermes.plugin_host.worker.protocol import Message

FIRST_PAUSE, LAST_PAUSE = 1.0, 300.0
"""Seconds before a worker is started again that ends soon after every start, doubling from first to last."""
STEADY = 60.0
"""Seconds after which a worker counts as one that started well: its end is followed by a start at once."""


class Backoff:
    """When something that has ended may be started again."""

    def __init__(self) -> None:
        self._endings = 0
        self._until = 0.0

    def ended(self, began: float, ended: float) -> None:
        """It ran from *began* to *ended*."""
        self._endings = 1 if ended - began >= STEADY else self._endings + 1
        pause = 0.0 if self._endings == 1 else min(FIRST_PAUSE * 2.0 ** (self._endings - 2), LAST_PAUSE)
        self._until = ended + pause

    def left(self, now: float) -> float:
        """Seconds until it may be started."""
        return max(self._until - now, 0.0)


class Worker:
    """The process of one plugin of one profile.

    *spec* is that of ``Plugin.spec``, *manifest* what ``plugin.yaml`` says, *environment* all that the process
    gets. It prints into *log* and asks *host*. *limits* bound the start; see ``Process.call`` for *patience*.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        manifest: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        log: Path,
        host: Host,
        limits: LimitSet,
        patience: float = PATIENCE,
    ) -> None:
        self.name: str = spec["name"]
        self.about: dict[str, Any] = {}
        """What the process said of what it serves, after its last start and its last initialize."""
        self.ended = ""
        """How the last process ended; empty while none has."""
        self.limits = limits
        self._loading = {
            "on": "child",
            "method": "load",
            "args": [spec, manifest],
            "kwargs": {},
            "lane": TURN,
        }
        self._start: Callable[[], Process] = lambda: Process(self.name, environment, log, self._asked)
        self._ask_host = questions_to(host)
        self._patience = patience
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._process: Process | None = None
        self._began = 0.0
        self._backoff = Backoff()
        self._closed = threading.Event()
        self._again: Message | None = None
        self._numbers = itertools.count(1)
        self._callbacks: dict[int, tuple[contextvars.Context, Callable[..., Any]]] = {}
        self._lasting: list[int] = []

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self._process.pid if self._process is not None and self._process.alive else None

    def start(self) -> None:
        """Start the process and load the plugin, if that is not done. Raises LoadFailed."""
        self._running()

    def call(self, job: Mapping[str, Any], limit: float) -> Message:
        """The answer to *job*: ``result`` and what else the process says.

        Functions among the keywords can be called by the plugin until the call has returned. Raises what the
        plugin raises, WorkerDied, Unsendable, CallFailed, and ProviderUnavailable while there is no process.
        """
        process = self._ready()
        sent, mine = self._with_callbacks(job)
        try:
            answer = process.call(sent, limit, self._patience)
        finally:
            for number in mine:
                self._callbacks.pop(number, None)
        return self._read(sent["method"], answer)

    def initialize(self, job: Mapping[str, Any], limit: float) -> Message:
        """Like ``call``; after every later start this is repeated before anything else.

        Its functions can be called until the next one of these, or the end.
        """
        self._again = None
        self._closed.clear()
        process = self._ready()
        sent, mine = self._with_callbacks(job)
        answer = self._read(sent["method"], process.call(sent, limit, self._patience))
        before, self._lasting = self._lasting, mine
        self._again = sent
        for number in before:
            self._callbacks.pop(number, None)
        return answer

    def switched(self, session_id: str) -> None:
        """The session that ``initialize`` is repeated for is *session_id* now."""
        again = self._again
        if again is not None and again["args"]:
            self._again = {**again, "args": [session_id, *again["args"][1:]]}
        elif again is not None:
            self._again = {**again, "kwargs": {**again["kwargs"], "session_id": session_id}}

    def close(self, seconds: float) -> None:
        """End the process within about *seconds*; until ``initialize`` is called again, calls are refused."""
        self._closed.set()
        self._again = None
        lock = self._mine()
        if lock.acquire(timeout=seconds + 1.0):  # else it is being started, and ended when it is
            process, self._process = self._process, None
            lock.release()
            if process is not None and process.alive:
                process.end(seconds)
            elif process is not None:
                self.ended = process.reason
        self._callbacks.clear()

    # -- inside ------------------------------------------------------------------------------------------

    def _ready(self) -> Process:
        """The process, started again if there is none. Raises ProviderUnavailable."""
        try:
            return self._running()
        except LoadFailed as exc:
            raise ProviderUnavailable(self.name, f"it does not load any more: {exc}") from exc

    def _running(self) -> Process:
        with self._mine():
            if self._closed.is_set():
                raise ProviderUnavailable(
                    self.name, "its process was ended", next_step="open the profile again"
                )
            if self._process is not None:
                if self._process.alive:
                    return self._process
                self._ended(self._process.reason, self._process.ended_at)
                self._process = None
            if pause := self._backoff.left(time.monotonic()):
                reason = f"its process {self.ended}; it is started again in {pause:.0f} s"
                raise ProviderUnavailable(self.name, reason)
            self._began = time.monotonic()
            self._process = process = self._started()
            if self._closed.is_set():  # meanwhile
                process.kill("was not needed any more")
            return process

    def _started(self) -> Process:
        """A new process, with the plugin loaded and started for the session that is open.

        Raises LoadFailed, and ProviderUnavailable where the start for the session failed.
        """
        try:
            process = self._start()
        except OSError as exc:
            raise LoadFailed(f"its process cannot be started: {exc}") from exc
        try:
            self._load(process)
            if (again := self._again) is not None:
                self._read(again["method"], process.call(again, self.limits.initialize, self._patience))
        except BaseException as exc:
            self._ended(process.reason or f"could not be started again: {describe(exc)}", time.monotonic())
            process.kill("could not be started")
            if isinstance(exc, LoadFailed) or not isinstance(exc, Exception):
                raise
            raise ProviderUnavailable(self.name, f"its process {self.ended}") from exc
        return process

    def _load(self, process: Process) -> None:
        try:
            answer = process.call(self._loading, self.limits.initialize, self._patience)
            failed = self._read("load", answer)["result"]
        except Exception as exc:
            raise LoadFailed(describe(exc)) from exc
        if failed is not None:
            raise LoadFailed(*failed)

    def _ended(self, reason: str, when: float) -> None:
        self.ended = reason
        self._backoff.ended(self._began, when)

    def _read(self, hook: str, answer: Message) -> Message:
        if "error" in answer:
            error = unpack(answer["error"])
            if isinstance(error, PluginError) and error.exits:
                raise CallFailed(hook, error)
            raise error
        if "about" in answer:
            self.about = answer["about"]
        return answer

    def _with_callbacks(self, job: Mapping[str, Any]) -> tuple[Message, list[int]]:
        """*job* with numbers in place of the functions among its keywords, and these numbers."""
        functions = {key: value for key, value in job["kwargs"].items() if callable(value)}
        if not functions:
            return dict(job), []
        numbers = {name: next(self._numbers) for name in functions}
        for name, number in numbers.items():
            self._callbacks[number] = (contextvars.copy_context(), functions[name])
        kwargs = {key: value for key, value in job["kwargs"].items() if key not in functions}
        return {**job, "kwargs": kwargs, "callbacks": numbers}, list(numbers.values())

    def _asked(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The answer to a question of the plugin."""
        if name == CALLBACK:
            known = self._callbacks.get(args[0])
            if known is None:
                raise HermesError("the call that this function was given for has returned")
            context, function = known
            return context.copy().run(function, *args[1:], **kwargs)
        return self._ask_host(name, *args, **kwargs)

    def _mine(self) -> threading.Lock:
        """The lock. A fork of the process that made this starts anew: what it finds is not its own."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()
            if self._process is not None:
                self._process.forget()
                self._process = None
        return self._lock
