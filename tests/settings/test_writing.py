"""Writing config.yaml: one key, under a lock, against the file as it is, or not at all."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.errors import ConfigError, EditRefused, HermesError, StoreUnavailable
from hermes.profiles import Profile
from hermes.settings import active_provider, change, load, set_value, unset_value
from tests.settings.conftest import Write
from tests.support import give_to_nobody, unprivileged

FILE = "# mine\nmemory:\n  provider: mem0   # yes\n  memory_char_limit: 2200\nother: {a: 1}\n"


def test_a_write_is_a_diff_of_one_line(write: Write) -> None:
    """Comments, order and everything else stay."""
    profile = write(FILE)
    done = set_value(profile, "memory.memory_char_limit", 3000)
    assert (done.changed, done.created) == (True, False)
    assert profile.paths.config.read_text() == FILE.replace("2200", "3000")


def test_the_first_write_keeps_the_provider_that_held(profile: Profile) -> None:
    """Without the file the profile used ``local``; with it, it still does."""
    assert set_value(profile, "memory.redact", False).created
    assert profile.paths.config.read_text() == "memory:\n  provider: local\n  redact: false\n"
    assert profile.paths.config.stat().st_mode & 0o777 == 0o600
    assert active_provider(load(profile, environ={})) == "local"


def test_the_first_write_of_the_provider_itself(profile: Profile) -> None:
    """It says what it was told, once."""
    set_value(profile, "memory.provider", "mem0")
    assert profile.paths.config.read_text() == "memory:\n  provider: mem0\n"


def test_the_first_write_leaves_the_choice_of_other_files(write: Write) -> None:
    """Where common.yaml chooses, the new file does not."""
    profile = write(common="memory: {provider: mem0}\n")
    set_value(profile, "memory.redact", False)
    assert profile.paths.config.read_text() == "memory:\n  redact: false\n"
    assert active_provider(load(profile, environ={})) == "mem0"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory.memory_char_limit", "abc"),
        ("memory.memory_char_limit", 0),
        ("memory.provider", "../evil"),
        ("memory.provider", "/etc/passwd"),
        ("memory.memory_char_limt", 5),
        ("memory", "x"),
        ("plugins", [1]),
        ("journal.max_age", "long"),
        ("memory.mem0.timeouts.hook", "fast"),
        ("", 1),
        ("memory..x", 1),
    ],
)
def test_what_the_schema_refuses_is_not_written(write: Write, key: str, value: object) -> None:
    """The file stays, byte for byte; nor does a first write leave a file behind."""
    profile = write(FILE)
    with pytest.raises(ConfigError):
        set_value(profile, key, value)
    assert profile.paths.config.read_text() == FILE
    profile.paths.config.unlink()
    with pytest.raises(ConfigError):
        set_value(profile, key, value)
    assert not profile.paths.config.exists()


def test_a_mistake_that_is_there_already_does_not_stop_the_mending_of_it(write: Write) -> None:
    """A file with mistakes can be put right key by key."""
    profile = write("memory:\n  redact: maybe\n  memory_char_limit: abc\n")
    set_value(profile, "memory.redact", True)
    set_value(profile, "memory.memory_char_limit", 5)
    assert load(profile, environ={}).memory.memory_char_limit == 5


def test_setting_what_it_is_already_writes_nothing(write: Write) -> None:
    """The file is not touched."""
    profile = write(FILE)
    before = profile.paths.config.stat()
    assert not set_value(profile, "memory.memory_char_limit", 2200).changed
    after = profile.paths.config.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_unset_removes_its_line(write: Write) -> None:
    """And says whether there was one."""
    profile = write(FILE)
    assert unset_value(profile, "memory.memory_char_limit").changed
    assert profile.paths.config.read_text() == FILE.replace("  memory_char_limit: 2200\n", "")
    assert not unset_value(profile, "memory.memory_char_limit").changed
    profile.paths.config.unlink()
    assert not unset_value(profile, "memory.memory_char_limit").changed
    assert not profile.paths.config.exists()


def test_several_keys_in_one_write(write: Write) -> None:
    """A mapping is set key by key; all of it, or nothing."""
    profile = write(FILE)
    change(profile, {"memory.mem0": {"host": "yes", "tags": ["a"]}, ("x.y", "z"): 1}, remove=["other"])
    merged = load(profile, environ={}).merged
    assert (merged["memory"]["mem0"], merged["x.y"]) == ({"host": "yes", "tags": ["a"]}, {"z": 1})
    assert "other" not in merged
    before = profile.paths.config.read_bytes()
    with pytest.raises(ConfigError):
        change(profile, {"memory.mem0.host": "x", "memory.redact": "maybe"})
    assert profile.paths.config.read_bytes() == before


def test_mode_and_symlink_are_kept(write: Write, tmp_path: Path) -> None:
    """A file kept elsewhere is written there, with the mode it has."""
    profile = write()
    real = tmp_path / "dotfiles.yaml"
    real.write_text(FILE)
    real.chmod(0o640)
    profile.paths.config.symlink_to(real)
    set_value(profile, "memory.memory_char_limit", 1)
    assert profile.paths.config.is_symlink()
    assert real.read_text() == FILE.replace("2200", "1")
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "content",
    [b"- a\n", b"a: [\n", b"a:\n\tb: 1\n", b"a: \xff\n", b"a: 1\na: 2\n", b"text", b"a: 1\n---\nb: 1\n"],
)
def test_a_file_that_cannot_be_read_is_never_overwritten(write: Write, content: bytes) -> None:
    """It is refused by name and stays byte for byte."""
    profile = write(content)
    attempts: list[Callable[[], object]] = [
        lambda: set_value(profile, "memory.provider", "x"),
        lambda: unset_value(profile, "a"),
        lambda: change(profile, {"a": 1}),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigError) as caught:
            attempt()
        assert caught.value.problems[0].path == profile.paths.config
    assert profile.paths.config.read_bytes() == content


def test_no_permission(reachable: Path) -> None:
    """A file that may not be read, a folder that may not be written: an error, and nothing changed."""
    profile = Profile("default", reachable, reachable, "test")
    profile.paths.config.write_text(FILE)
    give_to_nobody(reachable)

    def attempt() -> None:
        profile.paths.config.chmod(0)
        with pytest.raises(StoreUnavailable, match=r"config\.yaml"):
            set_value(profile, "memory.provider", "x")
        profile.paths.config.chmod(0o600)
        reachable.chmod(0o500)
        with pytest.raises(HermesError):
            set_value(profile, "memory.provider", "x")
        reachable.chmod(0o700)

    unprivileged(attempt)
    assert profile.paths.config.read_text() == FILE


def test_a_full_disk(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old content stays whole, no temporary file stays, the error is ours; by a limit and by ENOSPC."""
    profile = write(FILE + "# " + "x" * 9000 + "\n")
    before = profile.paths.config.read_bytes()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            set_value(profile, "memory.provider", "x")
        except StoreUnavailable:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        set_value(profile, "memory.provider", "x")
    assert profile.paths.config.read_bytes() == before
    assert {p.name for p in profile.home.iterdir()} <= {"config.yaml", ".config.yaml.lock"}


def test_twelve_processes_at_once_all_survive(profile: Profile) -> None:
    """Each sets another key in a file that does not exist yet; every one of them is there afterwards."""
    script = (
        "import sys; from pathlib import Path\n"
        "from hermes.profiles import Profile; from hermes.settings import set_value\n"
        "root, home, n = sys.argv[1:]; p = Profile('work', Path(root), Path(home), 'test')\n"
        "sys.stdin.read(1); set_value(p, f'memory.mem{n}.key', int(n))"
    )
    args = [sys.executable, "-c", script, str(profile.root), str(profile.home)]
    children = [subprocess.Popen([*args, str(n)], stdin=subprocess.PIPE) for n in range(12)]
    for child in children:
        child.communicate(b"x", timeout=60)
    assert [child.returncode for child in children] == [0] * 12
    settings = load(profile, environ={})
    assert settings.memory.providers == {f"mem{n}": {"key": n} for n in range(12)}
    assert settings.memory.provider == "local"


def test_threads_at_once_all_survive(write: Write) -> None:
    """The lock holds between threads too, and an unset does not undo a set."""
    profile = write("memory:\n" + "".join(f"  old{n}: {{}}\n" for n in range(4)))
    threads = [threading.Thread(target=set_value, args=(profile, f"memory.new{n}.k", n)) for n in range(4)]
    threads += [threading.Thread(target=unset_value, args=(profile, f"memory.old{n}")) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(load(profile, environ={}).memory.providers) == {f"new{n}" for n in range(4)}


def test_a_refusal_says_what_to_do(write: Write) -> None:
    """Line, reason and the way by hand."""
    profile = write("memory: &m\n  provider: x\ncopy: *m\n")
    with pytest.raises(EditRefused) as caught:
        set_value(profile, "memory.provider", "y")
    assert caught.value.problems[0].line == 1
    assert "hermes config edit" in caught.value.next_step
