"""The environment of a profile is in the process for one profile at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.errors import ProfileBusy
from hermes.overlay import EnvironmentLease, variables_for


def lease(name: str, opener: EnvironmentLease | None = None, **dotenv: str) -> EnvironmentLease:
    """A lease of the profile *name* with *dotenv*."""
    return EnvironmentLease(name, Path("/srv/hermes/profiles") / name, dotenv, opener=opener)


def test_on_and_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the lease the profile's variables are there; after it everything is as it was."""
    monkeypatch.setenv("KEY", "outer")
    before = dict(os.environ)
    with lease("a", KEY="a", NEW="b"):
        assert (os.environ["KEY"], os.environ["NEW"]) == ("a", "b")
        assert (os.environ["HERMES_PROFILE"], os.environ["HERMES_HOME"]) == ("a", "/srv/hermes/profiles/a")
    assert dict(os.environ) == before


def test_what_a_dotenv_may_not_set() -> None:
    """What decides which code runs, and where the home is, is ignored and reported."""
    bad = {
        "PATH": "/evil",
        "Path": "x",
        "PYTHONPATH": "x",
        "LD_PRELOAD": "x",
        "DYLD_X": "x",
        "HERMES_HOME": "x",
    }
    values, ignored = variables_for("a", Path("/h"), {**bad, "HERMES_PROFILE": "b", "a=b": "x", "GOOD": "1"})
    assert values == {"GOOD": "1", "HERMES_HOME": "/h", "HERMES_PROFILE": "a"}
    assert set(ignored) == {*bad, "HERMES_PROFILE", "a=b"}
    with EnvironmentLease("a", Path("/h"), bad) as held:
        assert held.ignored == tuple(bad)
        assert os.environ["PATH"] != "/evil"


def test_value_that_somebody_changed_is_left() -> None:
    """A variable that a plugin set itself meanwhile is not undone, and is reported."""
    with lease("a", KEY="a", OTHER="o") as held:
        os.environ["KEY"] = "plugin"
        del os.environ["OTHER"]
    try:
        assert os.environ["KEY"] == "plugin"
        assert "OTHER" not in os.environ
        assert sorted(held.kept) == ["KEY", "OTHER"]
    finally:
        del os.environ["KEY"]


def test_same_profile_nests() -> None:
    """The same profile takes it again inside, with any lease; the outermost end takes it off."""
    outer = lease("a", KEY="a")
    with outer:
        with outer, lease("a", KEY="a"):
            assert os.environ["KEY"] == "a"
        assert os.environ["KEY"] == "a"
    assert "KEY" not in os.environ


def test_other_profile_is_refused() -> None:
    """Another profile gets ProfileBusy, also if the holder opened it but cannot stop its workers."""
    with lease("a", KEY="a") as held:
        for other in (lease("b", KEY="b"), lease("b", held, KEY="b")):
            with pytest.raises(ProfileBusy, match="'a' is in use"), other:
                pytest.fail("entered")
        assert os.environ["KEY"] == "a"
    with lease("b", KEY="b"):
        assert os.environ["KEY"] == "b"


def test_opened_profile_replaces_its_opener() -> None:
    """A profile opened by the holder has the environment alone: the opener is still, and off."""
    events = []

    @contextmanager
    def quiesce() -> Iterator[None]:
        events.append("stop")
        yield
        events.append("go")

    outer = lease("a", ONLY_A="1", KEY="a")
    outer.quiesce = quiesce
    with outer:
        with lease("b", outer, KEY="b"):
            assert (os.environ["KEY"], "ONLY_A" in os.environ, events) == ("b", False, ["stop"])
            with pytest.raises(ProfileBusy), outer:
                pytest.fail("entered")
        assert (os.environ["KEY"], os.environ["ONLY_A"], events) == ("a", "1", ["stop", "go"])
    assert "KEY" not in os.environ


def test_opener_that_ends_first() -> None:
    """Ending the opener before the profile it opened is an error; its variables do not come back after."""
    outer = lease("a", ONLY_A="1")
    outer.quiesce = _still
    inner = lease("b", outer, KEY="b")
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(ProfileBusy, match="still open"):
        outer.__exit__(None, None, None)
    assert os.environ["KEY"] == "b"
    inner.__exit__(None, None, None)
    assert {"ONLY_A", "KEY", "HERMES_HOME"}.isdisjoint(os.environ)
    with lease("c"):
        pass


def test_workers_that_cannot_be_stopped() -> None:
    """If stopping the opener's workers fails, the opener keeps the environment."""

    def quiesce() -> object:
        raise TimeoutError("a worker does not stop")

    outer = lease("a", KEY="a")
    outer.quiesce = quiesce  # type: ignore[assignment]
    with outer:
        with pytest.raises(TimeoutError), lease("b", outer, KEY="b"):
            pytest.fail("entered")
        assert os.environ["KEY"] == "a"
    assert "KEY" not in os.environ


@contextmanager
def _still() -> Iterator[None]:
    yield


class Worker:
    """A thread of profile A that reads its environment ten thousand times, and can be stopped."""

    def __init__(self) -> None:
        self.running = threading.Lock()
        self.seen: set[tuple[str | None, ...]] = set()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for _ in range(10_000):
            with self.running:
                self.seen.add(tuple(map(os.environ.get, ("KEY", "HERMES_HOME", "HERMES_PROFILE", "ONLY_B"))))
        self.done.set()

    @contextmanager
    def quiesce(self) -> Iterator[None]:
        """Wait for the read that runs, and let none begin."""
        with self.running:
            yield


@pytest.mark.parametrize("opened_by_a", [False, True])
def test_worker_never_sees_another_profile(opened_by_a: bool) -> None:
    """While B opens and closes all the time, a worker of A sees A's variables at each of 10,000 reads."""
    worker = Worker()
    outer = lease("a", KEY="a")
    outer.quiesce = worker.quiesce
    entered = refused = 0
    with outer:
        worker.thread.start()
        while not worker.done.is_set():
            try:
                with lease("b", outer if opened_by_a else None, KEY="b", ONLY_B="1"):
                    entered += 1
                    assert os.environ["KEY"] == "b"
            except ProfileBusy:
                refused += 1
        worker.thread.join()
    assert worker.seen == {("a", "/srv/hermes/profiles/a", "a", None)}
    assert (entered > 0, refused > 0) == (opened_by_a, not opened_by_a)
    assert "KEY" not in os.environ
