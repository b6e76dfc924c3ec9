"""One run of a worker, seen from its host: started, asked, and ended as a group."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.errors import HermesError, Unavailable
from hermes.plugin_host.host import METHODS, Host
from hermes.plugin_host.worker.failures import pack
from hermes.plugin_host.worker.protocol import Broken, Message, Peer, Unsendable

PING = 1.0
"""Seconds within which the reader of a worker answers, whatever its calls are doing."""
PATIENCE = 60.0
"""Seconds that a call may go on beyond its limit in a worker that still answers."""
_TRACE = 0.1
_BURIAL = 2.0
_WORKER = "from hermes.plugin_host.worker.keeper import main; main()"
_IN_TERMINAL = "from hermes.plugin_host.worker.child import in_terminal; in_terminal()"


class WorkerDied(Unavailable):
    """The process of a plugin ended during a call, by itself or because it had to be stopped."""

    def __init__(self, name: str, hook: str, reason: str, log: Path) -> None:
        super().__init__(f"{hook}: the process of {name} {reason}", next_step=f"what it printed is in {log}")
        self.name = name
        self.hook = hook
        self.reason = reason
        self.log = log


def launch(
    environment: Mapping[str, str], *, log: Path | None = None, terminal: bool = False, silent: bool = False
) -> tuple[subprocess.Popen[bytes], Peer]:
    """Start a child and the pipe to it: a worker that prints into *log*, or one that has the *terminal*.

    *silent*: what the latter prints goes nowhere.
    """
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    code = _IN_TERMINAL if terminal else _WORKER
    arguments: Sequence[str] = (str(theirs_in), str(theirs_out), *([str(log)] if log else ()))
    stream = None if terminal and not silent else subprocess.DEVNULL
    try:
        popen = subprocess.Popen(
            [sys.executable, "-E", "-P", "-u", "-c", code, *arguments],
            stdin=stream,
            stdout=stream,
            stderr=stream,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=not terminal,
            env=dict(environment),
        )
    except BaseException:
        os.close(ours_in)
        os.close(ours_out)
        raise
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return popen, Peer(ours_in, ours_out)


def questions_to(host: Host) -> Callable[..., Any]:
    """A function that asks *host* by name, for what may be asked over a pipe."""

    def ask(name: str, *args: Any, **kwargs: Any) -> Any:
        if name not in METHODS:
            raise HermesError(f"a host cannot be asked for {name!r}")
        return getattr(host, name)(*args, **kwargs)

    return ask


def answer_question(peer: Peer, message: Message, answer: Callable[..., Any]) -> None:
    """Answer a question of the plugin to its host by ``answer(name, *args, **kwargs)``."""
    reply: Message = {"reply": message["id"]}
    try:
        reply["result"] = answer(message["ask"], *message["args"], **message["kwargs"])
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is what the plugin gets
        reply["error"] = pack(exc)
    with contextlib.suppress(OSError):  # it has gone meanwhile
        try:
            peer.send(reply)
        except Unsendable as exc:
            peer.send({"reply": message["id"], "error": pack(exc)})


class Process:
    """A worker that runs, or has run. *answer* is asked what the plugin asks of its host."""

    def __init__(
        self, name: str, environment: Mapping[str, str], log: Path, answer: Callable[..., Any]
    ) -> None:
        self.name = name
        self.reason = ""
        """How it ended."""
        self.ended_at = 0.0
        self._log = log
        self._answer = answer
        self._buried = threading.Event()
        self._burying = threading.Lock()
        self._popen, self._peer = launch(environment, log=log)
        threading.Thread(target=self._listen, name=f"hermes-{name}-pipe", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process, which leads its group."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """False once its end was noticed."""
        return not self._buried.is_set()

    def call(self, job: Mapping[str, Any], limit: float, patience: float) -> Message:
        """The answer to *job*, be it a result or an error.

        A call that is past its *limit* goes on for *patience* more seconds while the reader of the process
        answers; then, or where the reader does not, the process is stopped. Raises WorkerDied, Unsendable.
        """
        hook = job["method"]
        try:
            answer = self._peer.ask(job, time.monotonic() + limit)
            got = answer.wait(limit)
            if got is None and not self._answers():
                self.kill(f"did not answer {hook} within {limit:g} s, nor a ping: it was stopped", trace=True)
            elif got is None and (got := answer.wait(patience)) is None:
                self.kill(f"had not answered {hook} after {limit + patience:g} s: it was stopped", trace=True)
        except TimeoutError:
            got = None
            self.kill(f"read nothing for {limit:g} s: it was stopped", trace=True)
        except (EOFError, OSError):
            got = None
            self._buried.wait(_BURIAL)
        if got is None:
            raise WorkerDied(self.name, hook, self.reason, self._log)
        return got

    def end(self, seconds: float) -> None:
        """Let it end by itself, *seconds* at most."""
        with contextlib.suppress(OSError, EOFError):
            self._peer.send({"end": True}, time.monotonic() + seconds)
        if not self._buried.wait(seconds):
            self.kill("did not end by itself: it was stopped")

    def kill(self, reason: str, *, trace: bool = False) -> None:
        """Stop it and what it started; *trace*: after it has printed what its threads are doing."""
        with self._burying:
            self.reason = self.reason or reason
            if trace:
                self._signal(os.kill, signal.SIGUSR1)
        if trace:
            self._buried.wait(_TRACE)
        with self._burying:
            self._stop()
        if not self._buried.wait(_BURIAL):  # a child of it that left the group holds the pipe
            self._bury()

    def forget(self) -> None:
        """This process is a fork of the one that started it: let go of the pipe and of nothing else."""
        self._peer.close()
        self._popen.returncode = 0  # it is not ours to wait for
        self._buried.set()

    def _answers(self) -> bool:
        until = time.monotonic() + PING
        try:
            return self._peer.ask({"ping": True}, until).wait(PING) is not None
        except (OSError, EOFError):  # TimeoutError is an OSError
            return False

    def _listen(self) -> None:
        try:
            self._peer.run(self._take)
        except Broken as exc:
            self.reason = self.reason or f"sent {exc}: it was stopped"
        finally:
            self._bury()

    def _take(self, message: Message) -> None:
        if not message.keys() >= {"id", "ask", "args", "kwargs"}:
            raise Broken("a message that is neither a question nor an answer")
        threading.Thread(
            target=answer_question,
            args=(self._peer, message, self._answer),
            name=f"hermes-{self.name}-asks",
            daemon=True,
        ).start()

    def _bury(self) -> None:
        """Make sure that nothing of it is left, and say how it ended."""
        with self._burying:
            if self._buried.is_set():
                return
            self._stop()  # before the wait: until then the number is its own
            status = self._popen.wait()
            self.reason = self.reason or _how(status)
            self.ended_at = time.monotonic()
            self._peer.give_up()
            self._peer.close()
            self._buried.set()

    def _stop(self) -> None:
        self._signal(os.killpg, signal.SIGKILL)
        self._signal(os.kill, signal.SIGKILL)  # it may have gone into another group

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self._popen.pid, number)


def _how(status: int) -> str:
    if status >= 0:
        return f"ended by itself with exit code {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
