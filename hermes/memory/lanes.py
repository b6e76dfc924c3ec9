"""Calls into code that is not ours: one standing worker thread, a limit for every call, and nothing gets out.

A lane makes one call at a time. A call that is past its limit is left alone; until it comes back, the lane
refuses further calls at once, so that they never pile up behind it.
"""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
from attrs.validators import gt

from hermes.errors import Unavailable

_SLICE = 1.0
"""Seconds of one wait: a Ctrl-C that comes in the moment before it begins is seen when it ends."""


@attrs.frozen
class Limits:
    """How long a provider may take, in seconds."""

    prefetch: float = attrs.field(default=3.0, validator=gt(0))
    tool_call: float = attrs.field(default=30.0, validator=gt(0))
    hook: float = attrs.field(default=5.0, validator=gt(0))
    initialize: float = attrs.field(default=15.0, validator=gt(0))
    session_end: float = attrs.field(default=120.0, validator=gt(0))
    shutdown: float = attrs.field(default=10.0, validator=gt(0))


class LimitSet(Protocol):
    """Anything with the limits of ``Limits``, such as the settings' own value."""

    @property
    def prefetch(self) -> float:
        """Recall before a model call."""

    @property
    def tool_call(self) -> float:
        """One call of a tool."""

    @property
    def hook(self) -> float:
        """Every other member."""

    @property
    def initialize(self) -> float:
        """The start for a session."""

    @property
    def session_end(self) -> float:
        """The end of a session, which may have to think about it."""

    @property
    def shutdown(self) -> float:
        """Everything that happens at the end, together."""


class CallTimedOut(Unavailable):
    """A call was given up at its limit; it goes on by itself as ``call``."""

    def __init__(self, hook: str, limit: float, call: Call) -> None:
        super().__init__(
            f"{hook} did not return within {limit:g} s",
            next_step="raise its limit under memory.timeouts, or mend the provider",
        )
        self.hook = hook
        self.limit = limit
        self._call = call

    @property
    def call(self) -> Call:
        """The call that was given up; it may still bring a result."""
        return self._call


class CallStillRunning(Unavailable):
    """The call was not made: an earlier one has not come back since ``since`` (Unix seconds)."""

    def __init__(self, hook: str, since: float) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(since))
        super().__init__(f"an earlier call ({hook}) runs since {clock}", next_step="wait for it, or restart")
        self.hook = hook
        self.since = since


class CallFailed(Unavailable):
    """The provider raised something that is no Exception, such as SystemExit; it is the cause of this."""

    def __init__(self, hook: str, error: BaseException) -> None:
        super().__init__(
            f"{hook} raised {describe(error)}", next_step="report it to the author of the provider"
        )
        self.hook = hook


class LaneClosed(Unavailable):
    """The lane has been closed: no more calls."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is shut down", next_step="open the profile again")


class Call:
    """One call on a lane, running or done."""

    __slots__ = (
        "_after",
        "_args",
        "_context",
        "_done",
        "_fn",
        "_kwargs",
        "deadline",
        "error",
        "finished",
        "hook",
        "started",
        "value",
    )

    def __init__(
        self,
        hook: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        context: contextvars.Context,
    ) -> None:
        self.hook = hook
        self.started = self.deadline = 0.0
        self.finished = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._fn: Callable[..., Any] | None = fn
        self._args = args
        self._kwargs = kwargs
        self._context = context
        self._after: Callable[[], None] | None = None
        self._done = _held_lock()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the call, *seconds* at most; True once it has ended. Ctrl-C interrupts it."""
        if not self._done.acquire(timeout=min(max(seconds, 0.0), _SLICE)) and not self._wait_on(seconds):
            return False
        self._done.release()
        return True

    def _wait_on(self, seconds: float) -> bool:
        until = time.monotonic() + seconds - _SLICE
        while (left := until - time.monotonic()) > 0:
            if self._done.acquire(timeout=min(left, _SLICE)):
                return True
        return False

    def result(self) -> Any:
        """What the call returned. Raises what it raised, CallFailed for what is no Exception."""
        if self.error is None:
            return self.value
        if isinstance(self.error, Exception):
            raise self.error
        raise CallFailed(self.hook, self.error) from self.error

    def _run(self) -> None:
        assert self._fn is not None
        try:
            self.value = self._context.run(self._fn, *self._args, **self._kwargs)
        except BaseException as exc:  # noqa: BLE001 - the boundary: SystemExit and KeyboardInterrupt end here too
            self.error = exc
        self._fn = None  # what was handed over must not live as long as its result
        self._args, self._kwargs = (), {}


class Lane:
    """One worker thread that makes one call at a time. The thread starts with the first call.

    *observe* is told of every call that came back: its hook, how long it ran in seconds, what it raised.
    """

    def __init__(
        self,
        name: str,
        *,
        observe: Callable[[str, float, BaseException | None], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._observe = observe
        self._clock = clock
        self._lock = threading.Lock()
        self._wake = _held_lock()
        self._next: Call | None = None
        self._current: Call | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._closed = False

    def call(
        self,
        hook: str,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        limit: float,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Return ``fn(*args, **kwargs)``, run on the worker in *context* (default: a copy of the caller's).

        Raises CallTimedOut after *limit* seconds, CallStillRunning if the lane is held by an earlier call,
        LaneClosed, CallFailed, or the Exception that *fn* raised.
        """
        call = Call(hook, fn, args, kwargs or {}, context or contextvars.copy_context())
        began = self._clock()
        self._enter(call, limit, began, began + limit)
        if not call.wait(limit if call.started == began else began + limit - self._clock()):
            raise CallTimedOut(hook, limit, call)
        return call.result()

    def start(
        self,
        hook: str,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        limit: float,
        context: contextvars.Context | None = None,
        patience: float | None = None,
    ) -> Call:
        """Hand the call to the worker and return at once; *limit* says when it counts as stuck.

        A call of another thread that is within its limit is waited for, *patience* seconds at most (default:
        *limit*). Raises CallStillRunning and LaneClosed.
        """
        call = Call(hook, fn, args, kwargs or {}, context or contextvars.copy_context())
        began = self._clock()
        self._enter(call, limit, began, began + (limit if patience is None else patience))
        return call

    def stuck(self) -> tuple[str, float] | None:
        """The call that is past its limit and since when it runs (Unix seconds), if there is one."""
        with self._lock:
            call = self._current
            if call is None or call.finished or self._clock() < call.deadline:
                return None
            return call.hook, self._wall(call.started)

    def busy(self) -> bool:
        """True while a call is running."""
        with self._lock:
            return self._current is not None and not self._current.finished

    def after(self, call: Call, callback: Callable[[], None]) -> None:
        """Run *callback* when *call* has ended: on the worker, or here if it already has."""
        with self._lock:
            if not call.finished:
                call._after = callback
                return
        callback()

    def close(self) -> None:
        """Take no more calls and end the worker once it is idle. Does not wait."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._thread is not None and (self._current is None or self._current.finished):
                self._wake.release()  # with nothing in _next: the worker leaves

    def join(self, seconds: float) -> bool:
        """Wait for the worker of a closed lane to end, *seconds* at most; False if a call holds it."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(max(seconds, 0.0))
        return not thread.is_alive()

    def _enter(self, call: Call, limit: float, now: float, give_up: float) -> None:
        """Hand *call* over as soon as the lane is free, but not after *give_up*."""
        while (busy := self._take(call, limit, now)) is not None:
            if now >= busy.deadline or not busy.wait(min(give_up, busy.deadline) - now):
                raise CallStillRunning(busy.hook, self._wall(busy.started))
            now = self._clock()

    def _take(self, call: Call, limit: float, now: float) -> Call | None:
        """Start *call* if the lane is free, else return the call that holds it."""
        with self._lock:
            if self._closed:
                raise LaneClosed(self.name)
            if self._pid != os.getpid():  # the first call, or this is a forked child without the worker
                self._revive()
            busy = self._current
            if busy is not None and not busy.finished:
                return busy
            call.started = now
            call.deadline = now + limit
            self._current = self._next = call
            self._wake.release()
            return None

    def _revive(self) -> None:
        self._wake = _held_lock()
        self._next = self._current = None
        thread = threading.Thread(target=self._work, args=(self._wake,), name=self.name, daemon=True)
        thread.start()
        self._thread, self._pid = thread, os.getpid()

    def _work(self, wake: threading.Lock) -> None:
        while True:
            wake.acquire()
            call, self._next = self._next, None
            if call is None:
                return
            call._run()
            if self._observe is not None:
                self._observe(call.hook, self._clock() - call.started, call.error)
            with self._lock:
                call.finished = True
                after, done, closed = call._after, call._done, self._closed
            del call
            if after is not None:
                after()
            done.release()
            if closed:
                return

    def _wall(self, moment: float) -> float:
        return time.time() - (self._clock() - moment)


def describe(error: BaseException) -> str:
    """One bounded line about *error*: its class and what it says."""
    try:
        text = " ".join(str(error).split())
    except Exception as broken:  # noqa: BLE001 - __str__ of a foreign exception may itself fail
        text = f"(its text cannot be shown: {type(broken).__name__})"
    name = type(error).__name__
    line = f"{name}: {text}" if text else name
    return line if len(line) <= 300 else line[:299] + "…"


def _held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
