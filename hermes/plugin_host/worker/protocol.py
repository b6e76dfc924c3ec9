"""The pipe between a host and its worker: JSON messages behind their length, questions and answers by number.

Both ends are a ``Peer``. A question has an ``id``, its answer the same number as ``reply`` and either ``result``
or ``error``. Standard library only: worker processes import this module.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import queue
import select
import struct
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from hermes.errors import HermesError

MOST = 16 << 20
"""Bytes of the largest message."""
Message = dict[str, Any]
_LENGTH = struct.Struct("<I")
_DEEPEST = 50
_PLAIN = (str, bool, int, float, type(None))


class Unsendable(HermesError):
    """Something that cannot go through the pipe; the message names it and where it stands."""


class Broken(HermesError):
    """The other end sent what is no message."""


class Answer:
    """What will be answered to one question."""

    __slots__ = ("_box",)

    def __init__(self) -> None:
        self._box: queue.SimpleQueue[Message | None] = queue.SimpleQueue()

    def wait(self, seconds: float | None = None) -> Message | None:
        """The answer; None if there is none after *seconds*. Raises EOFError once the other end is gone."""
        try:
            got = self._box.get(timeout=None if seconds is None else max(seconds, 0.0))
        except queue.Empty:
            return None
        if got is None:
            self._box.put(None)
            raise EOFError
        return got

    def come(self, message: Message | None) -> None:
        """This is the answer; None: there will be none."""
        self._box.put(message)


class Peer:
    """One end of the pipe. Any thread may ask and send; one thread calls ``run``."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._reader = open(read_fd, "rb", buffering=1 << 16)  # noqa: SIM115 - closed by ``run``
        self._write_fd = write_fd
        self._writing = threading.Lock()
        self._ids = itertools.count(1)
        self._asked: dict[int, Answer] = {}
        self._gone = False
        os.set_blocking(write_fd, False)

    def ask(self, message: Mapping[str, Any], deadline: float | None = None) -> Answer:
        """Send *message* as a question. Raises what ``send`` raises; EOFError if the other end is gone."""
        number, answer = next(self._ids), Answer()
        self._asked[number] = answer
        try:
            self.send({"id": number, **message}, deadline)
        except BaseException:
            self._asked.pop(number, None)
            raise
        if self._gone:  # it went between the two lines above
            answer.come(None)
        return answer

    def send(self, message: Mapping[str, Any], deadline: float | None = None) -> None:
        """Send *message*. Raises Unsendable, OSError, TimeoutError at *deadline* (of ``time.monotonic``).

        After a TimeoutError half of a message may have been sent: the pipe is of no use any more.
        """
        data = encode(message)
        left = memoryview(_LENGTH.pack(len(data)) + data)
        if not self._writing.acquire(timeout=-1 if deadline is None else _until(deadline)):
            raise TimeoutError("the pipe is full")
        try:
            while left:
                try:
                    left = left[os.write(self._write_fd, left) :]
                except BlockingIOError:
                    self._wait_for_room(deadline)
        finally:
            self._writing.release()

    def run(self, handle: Callable[[Message], None]) -> None:
        """Take answers in and give everything else to *handle*, until the other end is gone.

        Raises Broken where that sends something that is no message.
        """
        try:
            while (message := self._receive()) is not None:
                if "reply" not in message:
                    handle(message)
                elif (answer := self._asked.pop(message["reply"], None)) is not None:
                    answer.come(message)
        finally:
            self.give_up()
            self._reader.close()

    def give_up(self) -> None:
        """Nothing more will be answered."""
        self._gone = True
        for number in list(self._asked):
            if (answer := self._asked.pop(number, None)) is not None:
                answer.come(None)

    def close(self) -> None:
        """Send nothing more. Who is sending something just now has a moment to end."""
        held = self._writing.acquire(timeout=1.0)
        fd, self._write_fd = self._write_fd, -1
        if fd >= 0:
            os.close(fd)
        if held:
            self._writing.release()

    def _wait_for_room(self, deadline: float | None) -> None:
        poll = select.poll()  # select() knows no descriptor above 1023
        poll.register(self._write_fd, select.POLLOUT)
        if not poll.poll(None if deadline is None else math.ceil(_until(deadline) * 1000)):
            raise TimeoutError("the pipe is full")

    def _receive(self) -> Message | None:
        head = self._reader.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        size: int = _LENGTH.unpack(head)[0]
        if size > MOST:
            raise Broken(f"a message of {size} bytes; {MOST} are the most")
        data = self._reader.read(size)
        return decode(data) if len(data) == size else None


def encode(message: Mapping[str, Any]) -> bytes:
    """*message* as bytes. A path becomes text. Raises Unsendable for what is not JSON, and for what is too large."""
    try:
        text = json.dumps(message, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_path)
    except (TypeError, ValueError, RecursionError) as exc:
        raise Unsendable(_offender(message, "", _DEEPEST) or f"it is not JSON: {exc}") from exc
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MOST:
        raise Unsendable(f"it takes {len(data)} bytes as JSON; {MOST} ({MOST >> 20} MiB) are the most")
    return data


def decode(data: bytes) -> Message:
    """The message in *data*. Raises Broken."""
    try:
        message = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as exc:
        raise Broken(f"a message that is not JSON: {exc}") from exc
    if not isinstance(message, dict):
        raise Broken(f"a message that is a {type(message).__name__}")
    return message


def _path(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def _offender(value: Any, place: str, deeper: int) -> str:
    """What in *value* is not JSON, and where; empty if nothing is."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{place or 'it'} is {value}, which is not JSON"
    if isinstance(value, (*_PLAIN, os.PathLike)):
        return ""
    if deeper == 0:
        return f"{place or 'it'} is nested too deeply"
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, _PLAIN):
                return f"{place or 'it'} has a key that is a {type(key).__name__}, which is not JSON"
            if found := _offender(item, f"{place}.{key}" if place else str(key), deeper - 1):
                return found
        return (
            ""
            if isinstance(value, dict)
            else f"{place or 'it'} is a {type(value).__name__}, which is not JSON"
        )
    if isinstance(value, list | tuple):
        each = (_offender(item, f"{place}[{at}]", deeper - 1) for at, item in enumerate(value))
        return next(filter(None, each), "")
    return f"{place or 'it'} is a {type(value).__name__}, which is not JSON"


def _until(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.0)
