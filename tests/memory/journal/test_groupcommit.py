"""Callers that come together are committed together, in their order, and none is forgotten."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Sequence

import pytest

from hermes.memory.journal.groupcommit import GroupCommit


def test_a_single_caller_waits_for_nobody() -> None:
    """Each of its jobs is a commit of its own."""
    groups: list[list[int]] = []
    commit = GroupCommit[int](lambda jobs: groups.append(list(jobs)))
    for number in range(5):
        commit.submit(number)
    assert groups == [[0], [1], [2], [3], [4]]


def test_those_who_come_during_a_commit_share_the_next() -> None:
    """Seven that arrive while the first is being committed are one group."""
    groups: list[list[int]] = []
    started, release = threading.Event(), threading.Event()

    def commit(jobs: Sequence[int]) -> None:
        groups.append(list(jobs))
        if len(groups) == 1:
            started.set()
            assert release.wait(30)

    group = GroupCommit(commit)
    first = threading.Thread(target=group.submit, args=(0,))
    first.start()
    assert started.wait(30)
    others = [threading.Thread(target=group.submit, args=(n,)) for n in range(1, 8)]
    for thread in others:
        thread.start()
    while len(group._queue) < 7:
        time.sleep(0)
    release.set()
    for thread in [first, *others]:
        thread.join(30)
    assert groups[0] == [0]
    assert sorted(groups[1]) == list(range(1, 8))
    assert len(groups) == 2


@pytest.mark.parametrize("seed", range(5))
def test_no_job_is_forgotten_whatever_the_timing(seed: int) -> None:
    """Threads that come and go at odd times: every job is committed once, each thread's in its order."""
    committed: list[tuple[int, int]] = []
    rng = random.Random(seed)
    pauses = [[rng.choice([0, 0, 0, 0.0001, 0.001]) for _ in range(60)] for _ in range(6)]

    def commit(jobs: Sequence[tuple[int, int]]) -> None:
        time.sleep(rng.choice([0, 0.0003]))
        committed.extend(jobs)

    group = GroupCommit(commit)

    def work(name: int) -> None:
        for number, pause in enumerate(pauses[name]):
            group.submit((name, number))
            assert (name, number) in committed[-200:]
            if pause:
                time.sleep(pause)

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(committed) == len(set(committed)) == 360
    for name in range(6):
        assert [number for who, number in committed if who == name] == list(range(60))


def test_a_commit_that_raises_leaves_nobody_waiting() -> None:
    """It must not raise; if it does, its caller gets the error and the others come back."""

    def commit(jobs: Sequence[int]) -> None:
        raise RuntimeError("broken")

    group = GroupCommit(commit)
    errors = []

    def work() -> None:
        try:
            group.submit(1)
        except RuntimeError:
            errors.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert errors


@pytest.mark.parametrize("leads", [True, False])
def test_a_ctrl_c_is_raised_when_nobody_relies_on_its_caller_any_more(leads: bool) -> None:
    """A caller that is interrupted while it waits still does its part; one that commits takes no other with it."""
    committed: list[str] = []
    started, release = threading.Event(), threading.Event()

    def commit(jobs: Sequence[str]) -> None:
        started.set()
        assert release.wait(30)
        committed.extend(jobs)

    group = GroupCommit(commit)
    others = [threading.Thread(target=group.submit, args=(f"other {n}",)) for n in range(3)]

    def interrupt() -> None:
        assert started.wait(30)
        if leads:
            others[0].start()
        while len(group._queue) < 1:
            time.sleep(0)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0)
        for other in others[1:]:
            other.start()
        release.set()

    breaker = threading.Thread(target=interrupt)
    breaker.start()
    if not leads:
        others[0].start()
        assert started.wait(30)

    def interrupted() -> None:
        group.submit("mine")
        time.sleep(10)  # the interrupt may come a moment after the call

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    breaker.join(30)
    for other in others:
        other.join(30)
        assert not other.is_alive()
    group.submit("after")
    assert {"other 0", "other 1", "other 2", "after"} <= set(committed)
    assert leads or "mine" in committed
