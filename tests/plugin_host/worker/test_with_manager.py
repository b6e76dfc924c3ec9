"""The three promises over a provider that crashes, hangs and comes back: nothing lost, no turn held."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.memory.journal import Journal
from hermes.memory.lanes import Limits
from hermes.memory.manager import MemoryManager
from tests.plugin_host.worker.making import ENOUGH, eventually, is_running, running

MARGIN = 2.0
"""Seconds beyond its limit within which a call must be back on a machine that does other things too."""


@contextmanager
def manager_over(
    tmp_path: Path, body: str, *, limits: Limits = ENOUGH, patience: float = 20.0
) -> Iterator[MemoryManager]:
    """A manager with a journal and the provider ``Demo`` of *body* in a worker, started."""
    with running(tmp_path, body, limits=limits, patience=patience) as provider:
        with_journal = Journal(tmp_path / "home" / "journal.db")
        manager = MemoryManager(
            home=tmp_path / "home", profile="default", limits=limits, journal=with_journal
        )
        manager.add_provider(provider)
        manager.initialize_all("s1")
        try:
            yield manager
        finally:
            manager.shutdown_all()
            with_journal.close()


def kept(tmp_path: Path) -> list[str]:
    """The turns that the provider has stored, in order."""
    file = tmp_path / "home" / "turns"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    "end",
    [
        "os._exit(1)",
        "ctypes.string_at(0)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "re.match(r'(a+)+$', 'a' * 40 + 'b')",
    ],
)
def test_the_journal_loses_nothing_across_a_crash(end: str, tmp_path: Path) -> None:
    """A process that ends in the middle of a delivery gets the same turn again, and the others in order."""
    body = f"""
    class Demo(Base):
        def sync_turn(self, user, answer):
            home = os.environ["HERMES_HOME"]
            if user == "turn 2" and not os.path.exists(home + "/crashed"):
                open(home + "/crashed", "w").close()
                {end}
            with open(home + "/turns", "a") as turns:
                turns.write(user + "\\n")
    """
    limits = Limits(prefetch=20, tool_call=20, hook=1.0, initialize=20, session_end=20, shutdown=20)
    with manager_over(tmp_path, body, limits=limits) as manager:
        for number in range(5):
            assert manager.sync_all(f"turn {number}", "x").durable
        assert eventually(lambda: manager.flush_pending(1), 60)
        assert kept(tmp_path) == [f"turn {number}" for number in range(5)]


def test_a_crash_in_a_recall_costs_that_recall(tmp_path: Path) -> None:
    """The turn goes on without it, the next recall is answered, and status says what happened."""
    body = """
    class Demo(Base):
        def prefetch(self, query): return os._exit(3) if query == "crash" else f"of {query} in {self.session}"
    """
    with manager_over(tmp_path, body) as manager:
        assert manager.prefetch_all("tea") == "of tea in s1"
        assert manager.prefetch_all("crash") == ""
        assert manager.prefetch_all("cake") == "of cake in s1"
        stats = manager.status().providers[0].hooks["prefetch"]
        assert (stats.calls, stats.errors) == (3, 1)
        assert (
            stats.last_error == "WorkerDied: prefetch: the process of demo ended by itself with exit code 3"
        )


def test_a_recall_that_never_ends_holds_one_turn_for_its_limit(tmp_path: Path) -> None:
    """Later turns are not held at all, and as soon as the process was ended there is recall again."""
    body = """
    class Demo(Base):
        def prefetch(self, query):
            return f"of {query}" if query != "hang" else re.match(r"(a+)+$", "a" * 40 + "b")
    """
    limits = Limits(prefetch=0.3, tool_call=20, hook=20, initialize=20, session_end=20, shutdown=20)
    with manager_over(tmp_path, body, limits=limits) as manager:
        began = time.monotonic()
        assert manager.prefetch_all("hang") == ""
        assert time.monotonic() - began < 0.3 + MARGIN
        assert manager.prefetch_all("tea") == ""
        assert manager.status().providers[0].stuck_in == "prefetch"
        assert eventually(lambda: manager.prefetch_all("cake") == "of cake")
        assert manager.status().providers[0].stuck_since is None


def test_a_tool_that_waits_for_ever_frees_its_lane_at_the_hard_limit(tmp_path: Path) -> None:
    """Where a thread would stay stuck for good, the process is ended and the next call answered."""
    body = """
    class Demo(Base):
        def get_tool_schemas(self): return [{"name": "wait", "parameters": {}}]
        def handle_tool_call(self, tool_name, args, **kwargs):
            return time.sleep(args.get("seconds", 0)) or "{}"
    """
    limits = Limits(prefetch=20, tool_call=0.3, hook=20, initialize=20, session_end=20, shutdown=20)
    with manager_over(tmp_path, body, limits=limits, patience=0.3) as manager:
        assert (
            "did not return within 0.3 s"
            in json.loads(manager.handle_tool_call("wait", {"seconds": 600}))["error"]
        )
        assert eventually(lambda: manager.handle_tool_call("wait", {}) == "{}")


def test_a_crash_confirms_nothing_that_was_only_accepted(tmp_path: Path) -> None:
    """What a provider had accepted before its process ended stays in the journal, to be offered again."""
    body = """
    class Demo(Base):
        delivery = "accepted"
        def sync_turn(self, user, answer): ...
        def prefetch(self, query): os._exit(3)
    """
    with manager_over(tmp_path, body) as manager:
        manager.sync_all("a", "b")
        assert manager.flush_pending(20)
        manager.prefetch_all("x")
        report = manager.shutdown_all()
        assert "may be lost" in report.failed["demo"]
        assert report.handed_over == 1


def test_a_switch_of_session_outlives_a_crash(tmp_path: Path) -> None:
    """The process that is started anew is in the session that the agent is in."""
    body = """
    class Demo(Base):
        def on_session_switch(self, new_session_id, **kwargs): self.session = new_session_id
        def prefetch(self, query): return os._exit(3) if query == "crash" else f"in {self.session}"
    """
    with manager_over(tmp_path, body) as manager:
        manager.on_session_switch("s2")
        assert manager.flush_pending(20)
        manager.prefetch_all("crash")
        assert manager.prefetch_all("tea") == "in s2"


def test_no_thread_and_no_process_is_left(tmp_path: Path) -> None:
    """After the end of the manager its worker is gone, also where ``shutdown`` is not implemented."""
    with manager_over(tmp_path, "class Demo(Base): ...\n") as manager:
        pid = manager._registry.external[0].provider._worker.pid
        assert manager.shutdown_all().clean
        assert not is_running(pid)
