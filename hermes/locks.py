"""Locks between processes: a file that one process at a time has locked, freed by the system when it dies."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

PRIVATE_FILE = 0o600

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK}
_NO_FLOCK = {errno.ENOSYS, errno.ENOTSUP}
_POLL = 0.002


class FileLock:
    """The lock on one lock file, held by one thread of one process at a time. Not reentrant.

    ``flock`` where there is one (a few microseconds); the filelock package elsewhere. The lock file stays
    when the lock is given back, so that waiters wait for the same file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = threading.Lock()
        self._owner: int | None = None
        self._fd: int | None = None
        self._foreign: Any = None  # a filelock.FileLock

    def acquire(self, timeout: float) -> bool:
        """Take the lock within *timeout* seconds (0: try once); False if somebody else keeps it.

        Raises OSError if the file cannot be made or locked, RuntimeError if this thread has it already.
        """
        if self._owner == threading.get_ident():
            raise RuntimeError(f"{self.path} is locked by this thread already")
        deadline = time.monotonic() + timeout
        if not self._threads.acquire(timeout=timeout):
            return False
        try:
            taken = self._acquire_file(deadline)
        except BaseException:
            self._threads.release()
            raise
        if taken:
            self._owner = threading.get_ident()
        else:
            self._threads.release()
        return taken

    def release(self) -> None:
        """Give the lock back. Another thread than the one that took it may do so."""
        self._owner = None
        fd, self._fd = self._fd, None
        foreign, self._foreign = self._foreign, None
        try:
            if fd is not None:
                try:
                    fcntl.flock(fd, fcntl.LOCK_UN)  # closing is not enough: a forked child may have a copy
                finally:
                    os.close(fd)
            if foreign is not None:
                foreign.release()
        finally:
            self._threads.release()

    def abandon(self) -> None:
        """In a forked child: close the copy of the descriptor, which leaves the parent its lock."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = None

    def _acquire_file(self, deadline: float) -> bool:
        if sys.platform == "win32":
            return self._acquire_foreign(deadline)
        while True:
            fd = _open_lock_file(self.path)
            try:
                taken = _poll(lambda fd=fd: _try_flock(fd), deadline)  # type: ignore[misc]
            except OSError as exc:
                os.close(fd)
                if exc.errno in _NO_FLOCK:
                    return self._acquire_foreign(deadline)
                raise
            except BaseException:
                os.close(fd)
                raise
            if not taken:
                os.close(fd)
                return False
            if _is_still(self.path, fd):
                self._fd = fd
                return True
            os.close(fd)  # removed or replaced while we waited: others lock the new one

    def _acquire_foreign(self, deadline: float) -> bool:
        import filelock

        lock = filelock.FileLock(self.path, mode=PRIVATE_FILE, thread_local=False)
        try:
            lock.acquire(timeout=max(0.0, deadline - time.monotonic()), poll_interval=_POLL)
        except filelock.Timeout:
            return False
        self._foreign = lock
        return True


def is_locked(path: Path) -> bool:
    """Whether some process, this one too, has *path* locked. Changes nothing. Raises OSError."""
    if sys.platform == "win32":
        lock = FileLock(path)
        if taken := lock.acquire(0):
            lock.release()
        return not taken
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who ask do not hold each other up
    except OSError as exc:
        if exc.errno in _BUSY:
            return True
        raise
    finally:
        os.close(fd)
    return False


def give_to_owner_of(folder: Path, path: Path) -> None:
    """What root makes in somebody's folder is theirs: else they could not use it. Raises OSError."""
    if os.name != "posix" or os.geteuid() != 0:
        return
    owner = folder.stat()
    if owner.st_uid != 0:
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _open_lock_file(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError:
            continue  # another process was faster
        try:
            give_to_owner_of(path.parent, path)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _try_flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        if exc.errno in _BUSY:
            return False
        raise
    return True


def _poll(attempt: Callable[[], bool], deadline: float) -> bool:
    while not attempt():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, _POLL * (0.5 + random.random())))  # noqa: S311 - to spread the waiters
    return True


def _is_still(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(fd))
    except FileNotFoundError:
        return False
