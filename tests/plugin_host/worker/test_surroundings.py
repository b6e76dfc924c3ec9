"""A worker between its host and its profile: environment, descriptors, lanes, several of them, and the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes.plugin_host.worker.opening import environment, open_worker
from hermes.plugin_host.worker.provider import WorkerProvider
from tests.plugin_host.worker.making import (
    ENOUGH,
    Answering,
    eventually,
    is_running,
    running,
    session_of,
    write_plugin,
)

DEMO = """
    class Demo(Base):
        def handle_tool_call(self, tool_name, args, **kwargs):
            return eval(tool_name)

        def prefetch(self, query, *, session_id=""):
            return f"knows {query}"

        def sync_turn(self, user, assistant):
            open(os.environ["HERMES_HOME"] + "/entered", "w").close()
            while not os.path.exists(os.environ["HERMES_HOME"] + "/go-on"):
                time.sleep(0.01)
"""


def value(provider: WorkerProvider, expression: str) -> Any:
    """What *expression* is in the worker."""
    return provider.handle_tool_call(expression, {})


def opened(folder: Path, profile: str, dotenv: dict[str, str], **options: Any) -> WorkerProvider:
    """A provider for *profile*, whose home is *folder* / its name, with an environment full of other things."""
    home = folder / profile
    home.mkdir()
    environ = {
        **{name: os.environ[name] for name in ("PATH", "HOME")},
        "LANG": "C.UTF-8",
        "HTTPS_PROXY": "http://proxy",
        "OPENER_API_KEY": "of the opener",
        "HERMES_HOME": "/of/the/opener",
        "HERMES_PROFILE": "opener",
        "PYTHONPATH": "/of/the/opener",
        "LD_PRELOAD": "",
    }
    worker = open_worker(
        write_plugin(folder, DEMO),
        {},
        profile=profile,
        home=home,
        dotenv=dotenv,
        environ=environ,
        host=Answering(home),
        limits=ENOUGH,
        **options,
    )
    return WorkerProvider(worker)


def test_its_environment_is_that_of_the_profile(tmp_path: Path) -> None:
    """Exactly: what belongs to the machine, the profile's ``.env``, and which profile it is."""
    dotenv = {"TEA_KEY": "secret", "PATH": "/evil", "PYTHONPATH": "/evil", "HERMES_HOME": "/evil"}
    provider = opened(tmp_path, "work", dotenv)
    found = value(provider, "dict(os.environ)")
    found.pop("LC_CTYPE", None)  # set by the interpreter itself where the language is C
    assert found == {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LANG": "C.UTF-8",
        "HTTPS_PROXY": "http://proxy",
        "TEA_KEY": "secret",
        "HERMES_HOME": str(tmp_path / "work"),
        "HERMES_PROFILE": "work",
    }
    provider.close()


def test_two_profiles_have_two_workers(tmp_path: Path) -> None:
    """Two profiles of one process run a plugin each in a process of its own, and see nothing of each other."""
    work, rest = opened(tmp_path, "work", {"KEY": "1", "A": ""}), opened(tmp_path, "rest", {"KEY": "2"})
    for provider, key, other in ((work, "1", "rest"), (rest, "2", "work")):
        assert value(provider, "os.environ['KEY']") == key
        assert other not in json.dumps(value(provider, "dict(os.environ)"))
    assert work._worker.pid != rest._worker.pid
    work.close()
    assert value(rest, "1 + 1") == 2
    rest.close()


def test_a_private_home_is_where_it_keeps_its_things(tmp_path: Path) -> None:
    """With ``private_home`` the home of the person is a folder of the profile, 0700, also against ``.env``."""
    provider = opened(tmp_path, "work", {"HOME": "/evil"}, private_home=True)
    private = tmp_path / "work" / "plugin-homes" / "demo"
    assert value(provider, "os.path.expanduser('~')") == str(private)
    assert value(provider, "os.environ['HOME']") == str(private)
    assert private.stat().st_mode & 0o777 == 0o700
    provider.close()


def test_a_terminal_has_what_a_terminal_needs() -> None:
    """A child that has the terminal knows which one; a worker does not."""
    environ = {"TERM": "xterm", "EDITOR": "ed", "SECRET": "x"}
    assert "TERM" not in environment("p", Path("/h"), {}, environ)
    assert environment("p", Path("/h"), {}, environ, terminal=True) == {
        "TERM": "xterm",
        "EDITOR": "ed",
        "HERMES_HOME": "/h",
        "HERMES_PROFILE": "p",
    }


def test_it_inherits_no_descriptor(tmp_path: Path) -> None:
    """Of the host's files and sockets it has none, however they were opened; its children have not even the pipe."""
    leaked, other = os.pipe()
    os.set_inheritable(leaked, True)
    try:
        with running(tmp_path, DEMO) as provider:
            listed = "sorted(os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in %s)"
            own = value(provider, listed % "range(100) if os.path.exists(f'/proc/self/fd/{fd}')")
            assert own == sorted(["/dev/null"] + 5 * ["pipe"]), (
                "null, output twice and for traces, to and from the host"
            )
            child = value(
                provider, "subprocess.check_output(['ls', '-l', '/proc/self/fd'], close_fds=False).decode()"
            )
            assert child.count("pipe:") == 2, "its output, twice: one of them is read by who asked"
    finally:
        os.close(leaked)
        os.close(other)


def test_it_needs_the_standard_library_only(tmp_path: Path) -> None:
    """Nothing that takes a while to import is in the worker unless the plugin imports it."""
    with running(tmp_path, DEMO) as provider:
        loaded = set(value(provider, "sorted({name.partition('.')[0] for name in sys.modules})"))
        heavy = {
            "attrs",
            "attr",
            "cattrs",
            "yaml",
            "typer",
            "dynaconf",
            "asyncio",
            "rich",
            "httpx",
            "filelock",
        }
        assert not loaded & heavy
        assert "logging" not in loaded


def test_a_long_delivery_holds_no_recall(tmp_path: Path) -> None:
    """Turns and deliveries have a lane each in the worker too."""
    with running(tmp_path, DEMO) as provider:
        delivering = threading.Thread(target=provider.sync_turn, args=("a", "b"))
        delivering.start()
        assert eventually((tmp_path / "home" / "entered").exists)
        assert provider.prefetch("tea") == "knows tea"
        assert delivering.is_alive()
        (tmp_path / "home" / "go-on").touch()
        delivering.join(20)
        assert not delivering.is_alive()


def test_calls_of_one_lane_share_a_thread(tmp_path: Path) -> None:
    """What an object made for one call can be used in the next: initialize, recall and shutdown share a thread."""
    body = """
    import sqlite3
    class Demo(Base):
        def initialize(self, session_id, **kwargs):
            self.db = sqlite3.connect(":memory:")
        def prefetch(self, query): return str(self.db.execute("SELECT 1").fetchone())
        def shutdown(self): self.db.close()
    """
    with running(tmp_path, body) as provider:
        provider.initialize("s1")
        assert provider.prefetch("x") == "(1,)"
        provider.shutdown()


HOST = """
import sys
from pathlib import Path
from tests.plugin_host.worker.making import running
with running(Path(sys.argv[1]), sys.argv[2]) as provider:
    print(provider._worker.pid, *provider.handle_tool_call("server", {}), flush=True)
    if sys.argv[3:]:
        provider.handle_tool_call(sys.argv[3], {})
    input()
"""
SERVING = """
    class Demo(Base):
        def handle_tool_call(self, tool_name, args, **kwargs):
            if tool_name == "server":
                return [subprocess.Popen(["sleep", "1000"]).pid]
            threading.Timer(0.2, lambda: open(os.environ["HERMES_HOME"] + "/held", "w").close()).start()
            time.sleep(0.3)
            return all(itertools.repeat(True))
"""


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "holding the interpreter lock"])
def test_a_host_that_is_killed_takes_its_workers_along(tmp_path: Path, busy: bool) -> None:
    """After ``kill -9`` of the host nothing of the worker is left, not even of one that cannot notice it."""
    words = [sys.executable, "-c", HOST, str(tmp_path), SERVING, *(["hold"] if busy else [])]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, env=environ) as host:
        assert host.stdout is not None
        pids = [int(word) for word in host.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        if busy:
            assert eventually((tmp_path / "home" / "held").exists)
        assert len(session_of(pids[0])) == 3, "the worker, its server, and who watches over them"
        host.send_signal(signal.SIGKILL)
    assert eventually(lambda: not session_of(pids[0]))


def test_a_fork_of_the_host_has_a_worker_of_its_own(tmp_path: Path) -> None:
    """A child that was forked starts its own process and leaves that of its parent alone."""
    with running(tmp_path, DEMO) as provider:
        mine = value(provider, "os.getpid()")
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, str(value(provider, "os.getpid()")).encode())
                provider.close()
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            theirs = pipe.read()
        os.waitpid(child, 0)
        assert theirs.isdigit()
        assert int(theirs) != mine
        assert not is_running(int(theirs))
        assert value(provider, "os.getpid()") == mine


def test_descriptors_and_threads_are_given_back(tmp_path: Path) -> None:
    """After many crashes and the end there are as many descriptors and threads as before."""

    def open_now() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as short as it gets

    before, threads = open_now(), threading.active_count()
    for _ in range(3):
        with running(tmp_path, DEMO) as provider:
            for _ in range(2):
                with pytest.raises(Exception, match="exit code 9"):
                    value(provider, "os._exit(9)")
                provider._worker._backoff = type(provider._worker._backoff)()
                assert value(provider, "1") == 1
    assert eventually(lambda: (open_now(), threading.active_count()) == (before, threads))
