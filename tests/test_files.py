"""Files are written whole or not at all, and locked between processes."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hermes import files, locks
from hermes.errors import HomeUnusable, StoreUnavailable
from hermes.files import locked, private_dir, read_bytes, write_atomic
from tests.support import give_to_nobody, unprivileged


def mode_of(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> set[str]:
    """What lies in *folder*."""
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def old_umask() -> Any:
    """The usual umask, under which a plain new file is readable by others."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_new_file_is_private(tmp_path: Path, old_umask: None) -> None:
    """A file that was not there is 0600; a given mode wins."""
    write_atomic(tmp_path / "a", b"x")
    write_atomic(tmp_path / "b", b"x", mode=0o644)
    assert (mode_of(tmp_path / "a"), mode_of(tmp_path / "b")) == (0o600, 0o644)


def test_mode_is_kept(tmp_path: Path, old_umask: None) -> None:
    """A file keeps the mode it has, and nothing is left beside it."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomic(path, b"new")
    assert (path.read_bytes(), mode_of(path), names(tmp_path)) == (b"new", 0o640, {"a"})


def test_private_from_birth(tmp_path: Path, old_umask: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """At no moment can others read what is written: every file is looked at right after it is opened."""
    seen = []
    real = os.open

    def watched(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        fd = real(path, flags, *args, **kwargs)
        if flags & os.O_CREAT:
            seen.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return fd

    monkeypatch.setattr(os, "open", watched)
    write_atomic(tmp_path / "a", b"secret")
    with locked(tmp_path / "a"):
        pass
    assert seen == [0o600, 0o600]


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give files away")
def test_owner_is_kept(tmp_path: Path) -> None:
    """What root rewrites, and what root makes in somebody's folder, is theirs."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    give_to_nobody(tmp_path)
    owner = path.stat().st_uid
    write_atomic(path, b"new")
    write_atomic(tmp_path / "b", b"new")
    with locked(tmp_path / "c"):
        pass
    private_dir(tmp_path / "d" / "e")
    assert {tmp_path.joinpath(name).stat().st_uid for name in ("a", "b", ".c.lock", "d", "d/e")} == {owner}


def test_group_that_cannot_be_kept_gets_nothing(reachable: Path) -> None:
    """Where the group cannot be kept, its rights are not given to another group."""
    path = reachable / "a"
    path.write_bytes(b"old")
    path.chmod(0o666)
    if os.getuid() == 0:
        give_to_nobody(reachable)
        os.chown(path, 0, 0)
        unprivileged(lambda: write_atomic(path, b"new"))
        assert (path.read_bytes(), mode_of(path)) == (b"new", 0o606)
    else:
        pytest.skip("needs a file of another group")


def test_link_is_followed(tmp_path: Path) -> None:
    """A link stays a link; the file it leads to is written, also where that is not there yet."""
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a", tmp_path / "a"
    link.symlink_to(target)
    write_atomic(link, b"1")
    assert link.is_symlink()
    assert target.read_bytes() == b"1"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic link"):
        write_atomic(loop, b"1")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder and a pipe are never replaced."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="regular"):
        write_atomic(tmp_path / "pipe", b"x")
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path / "folder", b"x")
    assert names(tmp_path) == {"pipe", "folder"}


def test_protected_file_is_not_got_round(reachable: Path) -> None:
    """A file without write permission is refused, although its folder would allow a rename."""
    path = reachable / "a"
    path.write_bytes(b"old")
    path.chmod(0o400)
    give_to_nobody(reachable)

    def act() -> None:
        with pytest.raises(PermissionError):
            write_atomic(path, b"new")

    unprivileged(act)
    assert (path.read_bytes(), names(reachable)) == (b"old", {"a"})


def refuse_rename(number: int) -> Callable[..., Any]:
    """A stand-in for a rename over a bind mount."""

    def replace(self: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(target))

    return replace


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EXDEV])
def test_file_that_cannot_be_renamed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A bind-mounted file is written in place: same inode, new content, nothing left beside it."""
    path = tmp_path / "a"
    path.write_bytes(b"old and longer")
    path.chmod(0o640)
    inode = path.stat().st_ino
    monkeypatch.setattr(Path, "replace", refuse_rename(number))
    write_atomic(path, b"new")
    assert (path.read_bytes(), mode_of(path), path.stat().st_ino) == (b"new", 0o640, inode)
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize("fails_at", ["write", "sync"])
def test_write_in_place_that_fails_puts_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    """The old content is there again when the disk fills up in the middle of a write in place."""
    path = tmp_path / "a"
    path.write_bytes(b"old content")
    monkeypatch.setattr(Path, "replace", refuse_rename(errno.EBUSY))
    real = files._write_all
    calls = []

    def torn(fd: int, data: bytes) -> None:
        calls.append(data)
        if len(calls) == 3:  # the temporary file, the copy of the old content, then the file itself
            real(fd, data[:3])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd, data)

    if fails_at == "write":
        monkeypatch.setattr(files, "_write_all", torn)
    else:
        real_sync, synced = os.fsync, []

        def sync(fd: int) -> None:
            synced.append(fd)
            if len(synced) == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real_sync(fd)

        monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"NEW CONTENT THAT IS LONGER")
    assert (path.read_bytes(), names(tmp_path)) == (b"old content", {"a"})


def test_write_in_place_that_cannot_put_back_keeps_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If even the old content cannot be put back, it is in a file that the error names."""
    path = tmp_path / "a"
    path.write_bytes(b"old content")
    monkeypatch.setattr(Path, "replace", refuse_rename(errno.EBUSY))
    monkeypatch.setattr(files, "_overwrite", lambda fd, data: files._write_all(-1, data))
    with pytest.raises(OSError, match="descriptor") as caught:
        write_atomic(path, b"new")
    kept = tmp_path / "a.before-failed-write"
    assert str(kept) in caught.value.__notes__[0]
    assert (kept.read_bytes(), names(tmp_path)) == (b"old content", {"a", kept.name})


@pytest.mark.parametrize("broken", ["write", "fsync", "open"])
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """No space: the old file stays, no temporary file does."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, full)
        with pytest.raises(OSError, match="No space"):
            write_atomic(path, b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"old", {"a"})


def test_file_size_limit(tmp_path: Path) -> None:
    """A real limit of the system ends the same way: old file, no temporary file."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_atomic(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (path.read_bytes(), names(tmp_path)) == (b"old", {"a"})


def test_killed_in_the_middle(tmp_path: Path) -> None:
    """A process killed before the rename leaves the old content; what it left is swept when it is old."""
    path = tmp_path / "a"
    write_atomic(path, b"old")
    code = (
        "import os, signal, sys; from pathlib import Path; from hermes import files\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_atomic(Path(sys.argv[1]), b'new')"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (leftover,) = names(tmp_path) - {"a"}
    assert mode_of(tmp_path / leftover) == 0o600
    write_atomic(path, b"new")
    assert leftover in names(tmp_path)  # young: it could be of another container
    os.utime(tmp_path / leftover, (0, 0))
    write_atomic(path, b"newer")
    assert (path.read_bytes(), names(tmp_path)) == (b"newer", {"a"})


def test_missing_file_is_none_and_everything_else_an_error(tmp_path: Path) -> None:
    """Only a file that is not there reads as None: no folder, pipe, or link that leads nowhere does."""
    assert read_bytes(tmp_path / "gone") is None
    assert read_bytes(tmp_path / "gone" / "deeper") is None
    (tmp_path / "empty").touch()
    assert read_bytes(tmp_path / "empty") == b""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    for name, reason in [("pipe", "regular"), ("link", "unmounted"), (".", "directory|folder|regular")]:
        with pytest.raises(StoreUnavailable, match=reason):
            read_bytes(tmp_path / name)
    with pytest.raises(StoreUnavailable, match="directory"):
        read_bytes(tmp_path / "empty" / "below")


def test_unreadable_file_names_owner_and_mode(reachable: Path) -> None:
    """No permission is an error with path, owner and mode."""
    path = reachable / "a"
    path.write_bytes(b"x")
    path.chmod(0)
    give_to_nobody(reachable)

    def act() -> None:
        with pytest.raises(StoreUnavailable, match=r"/a: Permission denied \(it belongs to \w+, mode 0000\)"):
            read_bytes(path)

    unprivileged(act)


def test_private_dir(tmp_path: Path, old_umask: None) -> None:
    """The folders it makes are 0700; those that exist stay as they are; what stands in the way is named."""
    tmp_path.chmod(0o755)
    assert private_dir(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert [mode_of(tmp_path / name) for name in (".", "a", "a/b")] == [0o755, 0o700, 0o700]
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(HomeUnusable, match="file: a file stands where a folder is needed"):
            private_dir(path)


def test_private_dir_without_permission(reachable: Path) -> None:
    """A folder that cannot be made is an error with the reason."""

    def act() -> None:
        with pytest.raises(HomeUnusable, match="Permission denied"):
            private_dir(reachable / "a" / "b")

    reachable.chmod(0o555)
    unprivileged(act)


ADD = """
import sys
from pathlib import Path
from hermes.files import locked, read_bytes, write_atomic
path = Path(sys.argv[1])
for _ in range(25):
    with locked(path, timeout=60):
        write_atomic(path, b"%d" % (int(read_bytes(path) or b"0") + 1))
"""


def test_lock_between_processes_and_threads(tmp_path: Path) -> None:
    """Eight processes and four threads count to 300 together, through a link as well."""
    path, link = tmp_path / "n", tmp_path / "link"
    link.symlink_to(path)
    children = [
        subprocess.Popen([sys.executable, "-c", ADD, link if number % 2 else path]) for number in range(8)
    ]

    def add() -> None:
        for _ in range(25):
            with locked(path, timeout=60):
                write_atomic(path, b"%d" % (int(read_bytes(path) or b"0") + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: add(), range(4)))
    assert [child.wait() for child in children] == [0] * 8
    assert path.read_bytes() == b"300"


def test_lock_that_is_not_given_back(tmp_path: Path) -> None:
    """Who waits too long gets an error and can go on later; the same thread is told at once."""
    path = tmp_path / "a"
    entered, leave = threading.Event(), threading.Event()

    def keep() -> None:
        with locked(path):
            entered.set()
            leave.wait(30)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(keep)
        entered.wait(30)
        with pytest.raises(StoreUnavailable, match=r"held its lock for 0.05 s"), locked(path, timeout=0.05):
            pass
        leave.set()
        future.result()
    with locked(path), pytest.raises(RuntimeError, match="this thread"), locked(path):
        pass
    with locked(path):
        pass


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    """The system gives back the lock of a process that was killed."""
    code = (
        "import sys, time; from pathlib import Path; from hermes.files import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "a"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(StoreUnavailable), locked(tmp_path / "a", timeout=0):
            pass
        child.kill()
    with locked(tmp_path / "a", timeout=5):
        pass


def test_forked_child_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    """A child forked while the lock is held neither has it nor gives it back."""
    path = tmp_path / "a"
    with locked(path):
        child = os.fork()
        if child == 0:
            try:
                with locked(path, timeout=0.05):
                    os._exit(1)
            except StoreUnavailable:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        with ThreadPoolExecutor(1) as pool:
            assert isinstance(pool.submit(_try, path).exception(), StoreUnavailable)
    _try(path)


def _try(path: Path) -> None:
    with locked(path, timeout=0):
        pass


def test_lock_file_that_is_removed_while_somebody_waits(tmp_path: Path) -> None:
    """Who waited for a lock file that was removed locks the new one, and not a file that nobody sees."""
    path = tmp_path / "a"
    waiting = threading.Event()

    def wait() -> float:
        waiting.set()
        with locked(path, timeout=30):
            return (tmp_path / ".a.lock").stat().st_ino

    with ThreadPoolExecutor(1) as pool:
        with files.locked(path):
            future = pool.submit(wait)
            waiting.wait(30)
            (tmp_path / ".a.lock").unlink()
        assert future.result() == (tmp_path / ".a.lock").stat().st_ino


def test_no_lock_library_where_the_system_has_locks() -> None:
    """The filelock package, slow to import, is left alone on POSIX."""
    code = (
        "import sys, tempfile; from pathlib import Path; from hermes.files import locked\n"
        "with tempfile.TemporaryDirectory() as d, locked(Path(d) / 'a'): pass\n"
        "assert 'filelock' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_system_without_flock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system has no flock the filelock package stands in."""

    def missing(fd: int) -> bool:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(locks, "_try_flock", missing)
    with locked(tmp_path / "a"):
        pass
    _try(tmp_path / "a")
