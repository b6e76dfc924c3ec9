"""A profile that a process holds is not moved away under it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes.errors import HomeUnusable, ProfileBusy, ProfileNotFound
from hermes.holds import exclusive, hold, holders
from hermes.paths import ProfilePaths
from tests.support import give_to_nobody, unprivileged

HOLD = """
import sys
from pathlib import Path
from hermes.holds import hold
from hermes.paths import ProfilePaths
with hold(ProfilePaths(root=Path(sys.argv[1]), home=Path(sys.argv[2]))):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def paths(tmp_path: Path) -> ProfilePaths:
    """A profile called work."""
    home = tmp_path / "profiles" / "work"
    home.mkdir(parents=True)
    return ProfilePaths(root=tmp_path, home=home)


def start_holder(paths: ProfilePaths) -> subprocess.Popen[bytes]:
    """Another process that holds the profile until its standard input ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, paths.root, paths.home], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def test_holders_are_seen(paths: ProfilePaths) -> None:
    """This process and another are both seen, and gone again after; a thread may hold it twice."""
    assert holders(paths) == []
    assert not paths.holds.exists()
    with start_holder(paths) as child, hold(paths), hold(paths):
        assert holders(paths) == sorted({os.getpid(), child.pid})
        child.communicate()
        assert holders(paths) == [os.getpid()]
    assert holders(paths) == []
    assert [path.name for path in paths.holds.iterdir()] == [".gate.lock"]


def test_killed_holder_holds_nothing(paths: ProfilePaths) -> None:
    """A killed process leaves a file that counts for nothing; asking leaves it, the next holder sweeps it."""
    with start_holder(paths) as child:
        child.kill()
    assert holders(paths) == []
    assert len(list(paths.holds.glob("*.lock"))) == 2
    with hold(paths):
        assert len(list(paths.holds.glob(f"{os.getpid()}-*.lock"))) == 1
        assert len(list(paths.holds.iterdir())) == 2


def test_exclusive_is_refused_while_held(paths: ProfilePaths) -> None:
    """The error names the profile, the process and what could not be done."""
    with start_holder(paths) as child:
        wanted = rf"'work' is in use \(process {child.pid}\): cannot delete it"
        with pytest.raises(ProfileBusy, match=wanted) as caught, exclusive(paths, "delete it"):
            pytest.fail("entered")
        child.communicate()
    assert caught.value.holders == (child.pid,)
    with exclusive(paths, "delete it"):
        pass


def test_hold_waits_for_a_change_and_finds_the_profile_gone(paths: ProfilePaths) -> None:
    """Who opens a profile while it is moved away is told that it is gone, and makes nothing in its place."""
    started = threading.Event()

    def open_it() -> None:
        started.set()
        with hold(paths):
            pass

    with ThreadPoolExecutor(1) as pool:
        with exclusive(paths, "delete it"):
            future = pool.submit(open_it)
            started.wait(30)
            paths.home.rename(paths.root / "away")
        assert isinstance(future.exception(), ProfileNotFound)
    with pytest.raises(ProfileNotFound):
        open_it()
    assert not paths.home.exists()


def test_default_home_is_made(tmp_path: Path) -> None:
    """The first writer of the default profile makes its home, private."""
    paths = ProfilePaths(root=tmp_path / "root", home=tmp_path / "root")
    with hold(paths):
        assert paths.home.stat().st_mode & 0o777 == paths.holds.stat().st_mode & 0o777 == 0o700


def test_home_that_cannot_be_written(reachable: Path) -> None:
    """Where no lock can be made the reason is said; asking who holds it still works."""
    paths = ProfilePaths(root=reachable, home=reachable)
    give_to_nobody(reachable)

    def act() -> None:
        reachable.chmod(0o555)
        with pytest.raises(HomeUnusable, match="Permission denied"), hold(paths):
            pass
        assert holders(paths) == []
        reachable.chmod(0o755)

    unprivileged(act)


def test_many_open_and_one_deletes(paths: ProfilePaths) -> None:
    """Among threads that hold and one that wants it alone, nobody is inside together with it."""
    inside = 0
    guard = threading.Lock()
    done = threading.Event()

    def hold_often() -> None:
        nonlocal inside
        while not done.is_set():
            with hold(paths):
                with guard:
                    inside += 1
                with guard:
                    inside -= 1

    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(hold_often) for _ in range(2)]
        alone = 0
        while alone < 5:
            try:
                with exclusive(paths, "delete it"), guard:
                    assert inside == 0
                    alone += 1
            except ProfileBusy:
                continue
        done.set()
        for future in futures:
            future.result()
