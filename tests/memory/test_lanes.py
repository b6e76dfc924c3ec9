"""A lane makes one call at a time, keeps its limit, and lets nothing out."""

from __future__ import annotations

import contextvars
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from hermes.memory.lanes import CallFailed, CallStillRunning, CallTimedOut, Lane, LaneClosed, describe
from tests.support import python

SHORT = 0.02


@pytest.fixture
def lane() -> Iterator[Lane]:
    """A lane that ends with the test."""
    lane = Lane("test-lane")
    yield lane
    lane.close()
    assert lane.join(10)


def test_returns_what_the_call_returns(lane: Lane) -> None:
    """Arguments go in, the result comes out, from one standing thread."""
    assert lane.call("sum", sum, ([1, 2],), limit=5) == 3
    threads = {lane.call("who", threading.get_ident, limit=5) for _ in range(20)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_raises_what_the_call_raises(lane: Lane) -> None:
    """An exception of the provider reaches the caller as it is."""
    with pytest.raises(ZeroDivisionError):
        lane.call("divide", lambda: 1 / 0, limit=5)


@pytest.mark.parametrize("error", [SystemExit(7), KeyboardInterrupt(), GeneratorExit()])
def test_contains_what_is_no_exception(lane: Lane, error: BaseException) -> None:
    """SystemExit and its like become an error of ours, and the worker goes on."""

    def fail() -> None:
        raise error

    with pytest.raises(CallFailed) as caught:
        lane.call("fail", fail, limit=5)
    assert caught.value.__cause__ is error
    assert lane.call("after", lambda: "alive", limit=5) == "alive"


def test_a_call_runs_in_a_copy_of_the_callers_context(lane: Lane) -> None:
    """Context variables of the caller are seen, changes to them stay inside."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    variable.set("caller's")

    def use() -> str:
        seen = variable.get()
        variable.set("worker's")
        return seen

    assert lane.call("use", use, limit=5) == "caller's"
    assert lane.call("use", use, limit=5) == "caller's"
    assert variable.get() == "caller's"


def test_a_late_call_is_given_up_and_none_is_stacked_behind_it(lane: Lane) -> None:
    """Past its limit a call is left alone; until it returns others are refused, and it can still be read."""
    release = threading.Event()
    with pytest.raises(CallTimedOut) as late:
        lane.call("slow", lambda: release.wait(30) and "late", limit=SHORT)
    before = time.time()
    for _ in range(3):
        with pytest.raises(CallStillRunning) as refused:
            lane.call("next", lambda: None, limit=30)
    assert refused.value.hook == "slow"
    assert refused.value.since <= before
    stuck = lane.stuck()
    assert stuck is not None
    assert stuck[0] == "slow"
    release.set()
    assert late.value.call.wait(10)
    assert late.value.call.result() == "late"
    assert lane.stuck() is None
    assert lane.call("next", lambda: "free", limit=30) == "free"


def test_another_caller_waits_for_a_call_within_its_limit(lane: Lane) -> None:
    """A healthy call of another thread is waited for, not refused."""
    entered, release = threading.Event(), threading.Event()

    def first() -> str:
        entered.set()
        release.wait(30)
        return "first"

    results: list[str] = []
    one = threading.Thread(target=lambda: results.append(lane.call("first", first, limit=30)))
    one.start()
    assert entered.wait(10)
    two = threading.Thread(target=lambda: results.append(lane.call("second", lambda: "second", limit=30)))
    two.start()
    assert lane.busy()
    release.set()
    one.join(10)
    two.join(10)
    assert results == ["first", "second"]


def test_without_patience_a_busy_lane_refuses(lane: Lane) -> None:
    """A caller that does not want to wait is refused while a call runs."""
    release = threading.Event()
    call = lane.start("slow", release.wait, (30,), limit=30)
    with pytest.raises(CallStillRunning):
        lane.start("post", lambda: None, limit=30, patience=0.0)
    release.set()
    assert call.wait(10)


def test_callback_after_a_call(lane: Lane) -> None:
    """A callback runs when the call ends, or at once if it has ended."""
    release, told = threading.Event(), threading.Event()
    call = lane.start("slow", release.wait, (30,), limit=30)
    lane.after(call, told.set)
    assert not told.is_set()
    release.set()
    assert told.wait(10)
    again = threading.Event()
    lane.after(call, again.set)
    assert again.is_set()


def test_many_threads_share_a_lane(lane: Lane) -> None:
    """Calls of eight threads are all made, one at a time."""
    running = 0
    most = 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        running -= 1

    def caller() -> None:
        for _ in range(100):
            lane.call("work", work, limit=30)

    callers = [threading.Thread(target=caller) for _ in range(8)]
    for one in callers:
        one.start()
    for one in callers:
        one.join(60)
    assert most == 1
    assert lane.call("last", lambda: "ok", limit=5) == "ok"


def test_observer_is_told_of_every_call() -> None:
    """What returns is told: hook, seconds, error; also when nobody waits any more."""
    told: list[tuple[str, type[BaseException] | None]] = []
    lane = Lane(
        "observed", observe=lambda hook, seconds, error: told.append((hook, type(error) if error else None))
    )
    lane.call("good", lambda: None, limit=5)
    with pytest.raises(ValueError, match="x"):
        lane.call("bad", int, ("x",), limit=5)
    lane.close()
    assert lane.join(10)
    assert told == [("good", None), ("bad", ValueError)]


def test_closed_lane() -> None:
    """A closed lane refuses, its idle worker ends; one that is held ends when its call does."""
    lane = Lane("closing")
    assert lane.join(0)
    release = threading.Event()
    call = lane.start("slow", release.wait, (30,), limit=30)
    lane.close()
    lane.close()
    with pytest.raises(LaneClosed):
        lane.call("next", lambda: None, limit=5)
    assert not lane.join(0)
    release.set()
    assert call.wait(10)
    assert lane.join(10)


def test_nothing_is_kept_alive_by_a_finished_call(lane: Lane) -> None:
    """What was handed over is let go when the call ends."""
    import weakref

    class Payload:
        pass

    payload = Payload()
    gone = weakref.ref(payload)
    lane.call("take", lambda p: None, (payload,), limit=5)
    del payload
    lane.call("other", lambda: None, limit=5)
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_gets_a_worker_of_its_own() -> None:
    """After a fork the lane works in parent and child."""
    script = """
import os, sys, warnings
warnings.simplefilter("ignore")
from hermes.memory.lanes import Lane
lane = Lane("fork")
assert lane.call("one", lambda: 1, limit=5) == 1
pid = os.fork()
if pid == 0:
    os._exit(0 if lane.call("two", lambda: 2, limit=5) == 2 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert lane.call("three", lambda: 3, limit=5) == 3
"""
    done = python("-c", script)
    assert done.returncode == 0, done.stderr


def test_control_c_interrupts_the_waiting_caller(lane: Lane) -> None:
    """A real Ctrl-C in the main thread ends the wait at once; the call goes on by itself."""
    entered, release = threading.Event(), threading.Event()

    def slow() -> None:
        entered.set()
        release.wait(60)

    def interrupt() -> None:
        entered.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        lane.call("slow", slow, limit=60)
    assert lane.busy()
    release.set()


def test_an_interpreter_with_a_held_lane_exits() -> None:
    """A worker that never returns keeps no interpreter alive and prints nothing."""
    script = """
import threading
from hermes.memory.lanes import Lane, CallTimedOut
lane = Lane("held")
try:
    lane.call("forever", threading.Event().wait, limit=0.01)
except CallTimedOut:
    print("given up")
"""
    done = python("-c", script, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")


def test_describe_is_one_bounded_line() -> None:
    """An error is told in one line, whatever it says and even if it cannot say it."""

    class BrokenError(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(SystemExit()) == "SystemExit"
    assert len(describe(ValueError("x" * 1000))) <= 300
    assert "Broken" in describe(BrokenError())
