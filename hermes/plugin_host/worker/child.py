"""The worker process: loads one plugin and makes the calls that its host asks for, in one thread per lane.

Standard library only.
"""

from __future__ import annotations

import contextvars
import faulthandler
import itertools
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from hermes.errors import HermesError
from hermes.memory.coroutines import Coroutines
from hermes.plugin_host.context import Registered, RegistrationContext
from hermes.plugin_host.host import METHODS, Host
from hermes.plugin_host.worker.describing import about
from hermes.plugin_host.worker.failures import pack, unpack
from hermes.plugin_host.worker.protocol import Message, Peer, Unsendable

TURN, DELIVERY, HOOKS, END = "turn", "delivery", "hooks", "end"
"""The lanes. A call for ``END`` goes to that of the turns unless another call holds it."""
CALLBACK = "@callback"
_CHANGES = frozenset({"load", "initialize", "initialize_for_inspection"})
"""After these there may be other members, attributes and hooks than before."""
_BATCH, _BATCH_SIZE = 500, 1 << 20


def serve(read_fd: int, write_fd: int) -> None:
    """Serve the host at the other end of two descriptors, until it says that this is the end."""
    trace = os.dup(2)  # the plugin may close its own
    faulthandler.enable(trace)
    faulthandler.register(signal.SIGUSR1, trace, all_threads=True)
    Child(Peer(read_fd, write_fd), leave=_leave_with_all).run()


def in_terminal() -> None:
    """Serve the host that started this process with the terminal; it does not outlive it."""
    read_fd, write_fd = int(sys.argv[1]), int(sys.argv[2])
    sys.argv[:] = ["hermes"]
    os.set_inheritable(read_fd, False)
    os.set_inheritable(write_fd, False)
    try:
        Child(Peer(read_fd, write_fd), leave=_leave_alone).run()
    except KeyboardInterrupt:
        sys.exit(130)


class Child:
    """One plugin, and what the host asks of it. *leave* is called when the host is gone."""

    def __init__(self, peer: Peer, *, leave: Callable[[], None]) -> None:
        self._peer = peer
        self._leave = leave
        self._host = cast("Host", RemoteHost(self._ask))
        self._lanes: dict[str, queue.SimpleQueue[Message | None]] = {TURN: queue.SimpleQueue()}
        self._in_turn = False
        self._loop = Coroutines("hermes-coroutines")
        self._registered = Registered()
        self._folder = ""
        self._export: tuple[str, Iterator[Any]] = ("", iter(()))
        self._exports = itertools.count(1)

    def run(self) -> None:
        """Make the calls of a turn in this thread until the host says that it is the end."""
        threading.Thread(target=self._listen, name="hermes-host", daemon=True).start()
        turn = self._lanes[TURN]
        while (job := turn.get()) is not None:
            self._in_turn = True
            reply = self._reply_to(job)
            self._in_turn = False
            self._send(job, reply)

    # -- the pipe ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            self._peer.run(self._take)
        finally:
            self._leave()

    def _take(self, message: Message) -> None:
        if "ping" in message:
            self._peer.send({"reply": message["id"], "result": True})
        elif "end" in message:
            self._lanes[TURN].put(None)
        else:
            lane: str = message["lane"]
            self._lane(TURN if lane == END and not self._in_turn else lane).put(message)

    def _lane(self, name: str) -> queue.SimpleQueue[Message | None]:
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(lane,), name=f"hermes-{name}", daemon=True).start()
        return lane

    def _work(self, lane: queue.SimpleQueue[Message | None]) -> None:
        while (job := lane.get()) is not None:
            self._send(job, self._reply_to(job))

    def _reply_to(self, job: Message) -> Message:
        reply: Message = {"reply": job["id"]}
        try:
            reply["result"] = contextvars.copy_context().run(self._do, job)
            if job["method"] in _CHANGES:
                reply["about"] = about(self._registered, self._folder)
        except BaseException as exc:  # noqa: BLE001 - the boundary: SystemExit and KeyboardInterrupt end here too
            reply["error"] = pack(exc, self._folder)
        return reply

    def _send(self, job: Message, reply: Message) -> None:
        try:
            self._peer.send(reply)
        except Unsendable as exc:
            refused = Unsendable(f"{job['method']} returned what cannot be sent: {exc}")
            self._peer.send({"reply": job["id"], "error": pack(refused)})

    def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = self._peer.ask({"ask": method, "args": args, "kwargs": kwargs}).wait()
        assert answer is not None
        if "error" in answer:
            raise unpack(answer["error"])
        return answer["result"]

    # -- calls -------------------------------------------------------------------------------------------

    def _do(self, job: Message) -> Any:
        kwargs = dict(job["kwargs"])
        for name, number in job.get("callbacks", {}).items():
            kwargs[name] = self._callback(number)
        result = self._loop.settle(self._target(job)(*job["args"], **kwargs))
        return self._sendable(job["method"], result) if job["on"] == "provider" else result

    def _target(self, job: Message) -> Callable[..., Any]:
        method, registered = job["method"], self._registered
        match job["on"]:
            case "provider":
                target = getattr(registered.memory_provider, method)
            case "hooks":
                target = partial(registered.fire, method)
            case _:
                target = getattr(self, f"_{method}")
        return cast("Callable[..., Any]", target)

    def _sendable(self, method: str, result: Any) -> Any:
        if result is None:
            return None
        if method == "export_records":
            self._export = (f"{os.getpid()}-{next(self._exports)}", iter(result))
            return self._export[0]
        if method == "recall_status":
            return {key: getattr(result, key, None) for key in ("provider_label", "count", "glyph")}
        return result

    def _callback(self, number: int) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._ask(CALLBACK, number, *args, **kwargs)

        return call

    # -- what the host asks of the process itself ---------------------------------------------------------

    def _load(self, spec: dict[str, Any], manifest: dict[str, Any]) -> tuple[str, str, int] | None:
        """Import the plugin and let it register; if that fails: why, and in which file and line."""
        from hermes.plugin_host.loading import LoadFailed, load

        context = RegistrationContext(spec["name"], self._host, manifest)
        self._registered = context.registered
        self._serve_host_modules(spec)
        try:
            load(spec, context)
        except LoadFailed as exc:
            return exc.message, exc.file, exc.line
        return None

    def _tree(self, spec: dict[str, Any], argv: list[str], prog: str) -> int:
        """Run the command tree of the plugin; its exit code."""
        from hermes.plugin_host import tree

        self._serve_host_modules(spec)
        return tree.run(spec, argv, prog=prog)

    def _words(self, spec: dict[str, Any], given: list[str], incomplete: str, prog: str) -> list[Any]:
        """What can stand next in the command tree of the plugin."""
        from hermes.plugin_host import tree

        self._serve_host_modules(spec)
        return tree.words(spec, given, incomplete, prog=prog)

    def _serve_host_modules(self, spec: dict[str, Any]) -> None:
        from hermes.compat import finder

        self._folder = str(spec.get("path") or "")
        finder.install(self._host, self._registered, worker=True)
        if root := spec.get("root"):
            sys.path.append(root)  # a module may import the one beside it by its bare name

    def _post_setup(
        self, spec: dict[str, Any], manifest: dict[str, Any], home: str, config: dict[str, Any]
    ) -> int:
        """Load the plugin and let it set itself up; 0, or what it exited with. Raises what either raises."""
        if (failed := self._load(spec, manifest)) is not None:
            from hermes.plugin_host.loading import LoadFailed

            raise LoadFailed(*failed)
        try:
            self._loop.settle(self._registered.memory_provider.post_setup(home, config))
        except SystemExit as exc:
            if exc.code is None or isinstance(exc.code, int):
                return exc.code or 0
            print(exc.code, file=sys.stderr)  # noqa: T201 - as the interpreter does
            return 1
        return 0

    def _records_of(self, export: str) -> list[Any]:
        """The next records of an export; none at its end. Raises HermesError where that is not known any more."""
        known, records = self._export
        if known != export:
            raise HermesError("the export cannot go on: its process has ended, or another was begun")
        batch: list[Any] = []
        size = 0
        for record in records:
            batch.append(record)
            size += len(str(record))
            if len(batch) >= _BATCH or size >= _BATCH_SIZE:
                break
        return batch


class RemoteHost:
    """The ``Host`` at the other end of the pipe."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS:
            raise AttributeError(name)

        def question(*args: Any, **kwargs: Any) -> Any:
            return self._ask(name, *args, **kwargs)

        return question


def _leave_with_all() -> None:
    os.killpg(0, signal.SIGKILL)  # the host is gone: this process and what it started


def _leave_alone() -> None:
    os._exit(129)
