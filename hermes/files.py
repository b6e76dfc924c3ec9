"""Files written whole or not at all, locked between processes, and never read as empty by mistake."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import HomeUnusable, StoreUnavailable
from hermes.locks import PRIVATE_FILE, FileLock, give_to_owner_of

PRIVATE_DIR = 0o700

_LEFTOVER = re.compile(r"\.hermes-(\d+)-[0-9a-f]+\.tmp")
_LEFTOVER_AGE = 60.0
_NO_RENAME = {errno.EBUSY, errno.EXDEV}
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES}


def write_atomic(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Make *data* the content of *path*, or leave the old content as it was.

    *mode* is that of the file afterwards: if None, the mode it had, and 0600 for a new one. The temporary
    file is 0600 from birth. The owner is kept where this process may do so. A symlink is followed. A file
    that cannot be renamed over (a bind mount) is written in place, and put back if that fails.

    Raises OSError, also where the file exists and this process may not write it.
    """
    target = Path(os.path.realpath(path))
    old = _stat_for_writing(target)
    if mode is None:
        mode = stat.S_IMODE(old.st_mode) if old else PRIVATE_FILE
    sweep_leftovers(target.parent)
    temp = _write_temp(target.parent, data, mode, old)
    try:
        try:
            temp.replace(target)
        except OSError as exc:
            if old is None or exc.errno not in _NO_RENAME:
                raise
            _write_in_place(target, data, mode)
            temp.unlink()
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def read_bytes(path: Path) -> bytes | None:
    """The content of *path*, or None if there is no such file.

    Raises StoreUnavailable for anything else: no permission, a folder, a link that leads nowhere. A read that
    fails is never taken for an empty file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        if path.is_symlink():
            raise StoreUnavailable(
                path,
                f"a link to {path.readlink()}, which does not exist",
                next_step="mount it, or remove the link",
            ) from None
        return None
    except OSError as exc:
        raise StoreUnavailable(path, describe_failure(path, exc)) from exc
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise StoreUnavailable(path, "not a regular file")
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    except OSError as exc:
        raise StoreUnavailable(path, describe_failure(path, exc)) from exc
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(path: Path, timeout: float = 10.0) -> Iterator[None]:
    """Hold the lock of *path* among all threads and processes, for one read-modify-write.

    The lock is a file of its own beside *path*, hidden, 0600; the folder is made if it is missing. Where
    *path* is a link, the lock is that of the file it leads to. *timeout* is in seconds. Not reentrant: the
    write of the inner holder would be lost.

    Raises StoreUnavailable when the lock cannot be had, RuntimeError when this thread holds it already.
    """
    target = Path(os.path.realpath(path))
    private_dir(target.parent)
    lock_file = target.parent / f".{target.name}.lock"
    lock = _lock_of(lock_file)
    try:
        taken = lock.acquire(timeout)
    except OSError as exc:
        raise StoreUnavailable(target, f"cannot be locked: {describe_failure(lock_file, exc)}") from exc
    if not taken:
        raise StoreUnavailable(
            target,
            f"another writer has held its lock for {timeout:g} s",
            next_step="try again when it is done",
        )
    try:
        yield
    finally:
        lock.release()


def private_dir(path: Path) -> Path:
    """Make *path* and what is missing above it, each 0700. Folders that exist are left as they are.

    Raises HomeUnusable with the reason.
    """
    if path.is_dir():
        return path
    for folder in [*reversed(path.parents), path]:
        try:
            folder.mkdir(PRIVATE_DIR)
        except FileExistsError:
            if not folder.is_dir():
                raise HomeUnusable(folder, "a file stands where a folder is needed") from None
        except OSError as exc:
            if not folder.is_dir():
                raise HomeUnusable(folder, f"the folder cannot be made: {exc.strerror}") from exc
        else:
            give_to_owner_of(folder.parent, folder)
    return path


def sweep_leftovers(folder: Path) -> None:
    """Remove the temporary files that a killed process left in *folder*."""
    with contextlib.suppress(OSError):  # the write that follows says what is wrong with the folder
        for leftover in folder.glob(".hermes-*.tmp"):
            match = _LEFTOVER.fullmatch(leftover.name)
            # The pid may be of another container that shares this folder: age tells.
            if match and not _is_alive(int(match[1])) and _age_of(leftover) > _LEFTOVER_AGE:
                leftover.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename in *folder* last through a loss of power, where the system can. Raises OSError."""
    if os.name != "posix":
        return
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as exc:
        if exc.errno not in _NO_FOLDER_SYNC:
            raise


def describe_failure(path: Path, exc: OSError) -> str:
    """What went wrong with *path*, with its owner and mode where they can be seen."""
    reason = exc.strerror or str(exc)
    try:
        facts = path.stat()
    except OSError:
        return reason
    return f"{reason} (it belongs to {_user_name(facts.st_uid)}, mode {stat.S_IMODE(facts.st_mode):04o})"


def _stat_for_writing(target: Path) -> os.stat_result | None:
    """What *target* is now, or None; refuses what is no file, or what this process may not write."""
    try:
        facts = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(facts.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    if not os.access(target, os.W_OK):  # a rename would get round the protection that somebody put there
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return facts


def _write_temp(folder: Path, data: bytes, mode: int, old: os.stat_result | None) -> Path:
    temp = folder / f".hermes-{os.getpid()}-{os.urandom(6).hex()}.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    try:
        try:
            _write_all(fd, data)
            _set_owner_and_mode(fd, mode, old, folder)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    return temp


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _set_owner_and_mode(fd: int, mode: int, old: os.stat_result | None, folder: Path) -> None:
    if os.name != "posix":
        return
    mine = os.fstat(fd)
    wanted = old or (folder.stat() if os.geteuid() == 0 else mine)
    if (wanted.st_uid, wanted.st_gid) != (mine.st_uid, mine.st_gid):
        try:
            os.fchown(fd, wanted.st_uid, wanted.st_gid)
        except PermissionError:
            try:
                os.fchown(fd, -1, wanted.st_gid)
            except PermissionError:
                mode &= ~0o070  # what that group could do is not given to another group
    os.fchmod(fd, mode)


def _write_in_place(target: Path, data: bytes, mode: int) -> None:
    """Overwrite *target*; a copy of the old content lies beside it until the new one is on disk."""
    old = target.read_bytes()
    copy = _write_temp(target.parent, old, PRIVATE_FILE, None)
    fd = os.open(target, os.O_WRONLY | getattr(os, "O_BINARY", 0))
    try:
        try:
            _overwrite(fd, data)
        except BaseException as exc:
            try:
                _overwrite(fd, old)
            except OSError:
                kept = copy.rename(target.parent / f"{target.name}.before-failed-write")
                exc.add_note(f"the old content is in {kept}")
                raise exc from None
            copy.unlink()
            raise
        if os.name == "posix":
            with contextlib.suppress(PermissionError):  # somebody else's file that we may write
                os.fchmod(fd, mode)
    finally:
        os.close(fd)
    copy.unlink()


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    _write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


_locks: weakref.WeakValueDictionary[Path, FileLock] = weakref.WeakValueDictionary()
_locks_guard = threading.Lock()


def _lock_of(path: Path) -> FileLock:
    with _locks_guard:
        lock = _locks.get(path)
        if lock is None:
            lock = _locks[path] = FileLock(path)
        return lock


def _after_fork() -> None:
    """In a forked child the threads that held the locks do not exist."""
    global _locks_guard
    _locks_guard = threading.Lock()
    for lock in list(_locks.values()):
        lock.abandon()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _is_alive(pid: int) -> bool:
    if os.name != "posix":
        return False  # os.kill would end it there; the age alone decides
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's process
    return True


def _age_of(path: Path) -> float:
    """Seconds since *path* was changed."""
    return time.time() - path.lstat().st_mtime


def _user_name(uid: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return f"user {uid}"
