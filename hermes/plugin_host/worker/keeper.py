"""The companion of a worker: a process that keeps its output and ends it, whatever the worker itself is doing.

A worker that holds its interpreter lock cannot see that its host is gone. So it forks this companion before it
loads anything: one loop that waits for the end of the host's pipe or of the worker, kills the worker's process
group and leaves. It also writes what the worker prints to the log, which is made with the first output and kept
below a size. Standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

LARGEST_LOG = 1 << 20
"""Bytes after which a log is put aside as ``.1``, taking the place of an older one."""
_LOOK = 1000
"""Milliseconds after which the worker is looked for, should its end not show otherwise."""
_CHUNK = 1 << 16


def main() -> None:
    """Run a worker: the arguments of the process are two descriptors and the path of its log."""
    read_fd, write_fd, log = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    sys.argv[:] = ["hermes"]
    os.set_inheritable(read_fd, False)
    os.set_inheritable(write_fd, False)
    accompany(read_fd, write_fd, log)

    from hermes.plugin_host.worker.child import serve

    serve(read_fd, write_fd)


def accompany(read_fd: int, write_fd: int, log: str) -> None:
    """Fork the companion of this process, a group leader without threads, and print into it from now on."""
    leader = os.getpid()
    output, printed = os.pipe()
    if os.fork() == 0:
        status = 1
        try:
            os.setpgid(0, 0)
            nothing = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(nothing, fd)
            os.close(printed)
            os.close(write_fd)
            _keep(leader, read_fd, output, Log(log))
            status = 0
        finally:
            os._exit(status)
    os.close(output)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(printed)


def _keep(leader: int, host: int, output: int, log: Log) -> None:
    poll = select.poll()
    poll.register(host, 0)  # only its end: what it sends is for the worker
    poll.register(output, select.POLLIN)
    os.set_blocking(output, False)
    while os.getppid() == leader:
        ready = dict(poll.poll(_LOOK))
        if output in ready and not log.take(output):
            break
        if host in ready:
            break
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nobody is left of it
    log.take(output)


class Log:
    """A file of its own for what one plugin prints, 0600 in a folder that is 0700."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._size = 0

    def take(self, output: int) -> bool:
        """Write down what is in the pipe *output*; False once nobody can print any more."""
        while True:
            try:
                data = os.read(output, _CHUNK)
            except BlockingIOError:
                return True
            if not data:
                return False
            try:
                self._write(data)
            except OSError:
                self._close()  # a disk that is full, a home that is read-only: the plugin goes on

    def _write(self, data: bytes) -> None:
        if self._size > LARGEST_LOG or not self._is_current():
            self._open()
            os.write(self._fd, time.strftime("-- %Y-%m-%d %H:%M:%S\n").encode())
        self._size += len(data)
        while data:
            data = data[os.write(self._fd, data) :]

    def _is_current(self) -> bool:
        """Whether the file is open, and still the one of that name: lines may have been taken out of it."""
        try:
            return self._fd >= 0 and os.path.samestat(os.stat(self._path), os.fstat(self._fd))  # noqa: PTH116
        except FileNotFoundError:
            return False

    def _open(self) -> None:
        self._close()
        folder = os.path.dirname(self._path)  # noqa: PTH120 - pathlib takes a while to import
        for one in (os.path.dirname(folder), folder):  # noqa: PTH120
            if not os.path.isdir(one):  # noqa: PTH112
                os.mkdir(one, 0o700)  # noqa: PTH102
        if _size_of(self._path) > LARGEST_LOG:
            os.replace(self._path, f"{self._path}.1")  # noqa: PTH105
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._fd).st_size

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except FileNotFoundError:
        return 0
