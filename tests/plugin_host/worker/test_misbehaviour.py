"""Whatever a plugin does, it costs its own call at most: each case in a real process."""

from __future__ import annotations

import os
import signal
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hermes.memory.lanes import CallFailed, Limits
from hermes.memory.log import scrub
from hermes.plugin_host.loading import LoadFailed
from hermes.plugin_host.worker import keeper
from hermes.plugin_host.worker.process import WorkerDied
from hermes.plugin_host.worker.protocol import Unsendable
from hermes.plugin_host.worker.provider import WorkerProvider
from tests.plugin_host.worker.making import SHORT, eventually, is_running, log_of, running

DEMO = textwrap.dedent("""
    class Demo(Base):
        def handle_tool_call(self, tool_name, args, **kwargs):
            return getattr(self, tool_name)(*args)

        def pid(self): return os.getpid()
        def echo(self, value): return value
        def session_now(self): return self.session
        def evaluate(self, text): return eval(text)
        def execute(self, text): exec(text, globals()); return "done"
        def endless_regex(self): return re.match(r"(a+)+$", "a" * 40 + "b")
        def endless_c_loop(self): return all(itertools.repeat(True))
        def exit(self): os._exit(3)
        def crash(self): ctypes.string_at(0)
        def sleep(self, seconds): time.sleep(seconds); return "slept"
""")


def ask(provider: WorkerProvider, tool: str, *args: Any) -> Any:
    """What the tool answers."""
    return provider.handle_tool_call(tool, args)  # type: ignore[arg-type]


@pytest.mark.parametrize("loop", ["endless_regex", "endless_c_loop"])
def test_a_call_that_holds_the_interpreter_lock_is_ended(loop: str, tmp_path: Path) -> None:
    """A process whose reader does not answer is killed; the next call has a new one, for the same session."""
    with running(tmp_path, DEMO, limits=SHORT) as provider:
        provider.initialize("s1")
        before = ask(provider, "pid")
        with pytest.raises(WorkerDied, match=r"nor a ping: it was stopped") as caught:
            ask(provider, loop)
        assert (caught.value.name, caught.value.hook) == ("demo", "handle_tool_call")
        assert not is_running(before)
        assert loop in log_of(tmp_path), "the log says where it was"
        assert ask(provider, "session_now") == "s1"
        assert ask(provider, "pid") != before


@pytest.mark.parametrize(
    ("way", "how"),
    [("exit", "ended by itself with exit code 3"), ("crash", "was ended by SIGSEGV")],
)
def test_a_crash_costs_one_call(way: str, how: str, tmp_path: Path) -> None:
    """The call says how the process ended; the next one is answered by a new process."""
    with running(tmp_path, DEMO) as provider:
        provider.initialize("s1")
        with pytest.raises(WorkerDied, match=how):
            ask(provider, way)
        assert ask(provider, "session_now") == "s1"


def test_a_crash_says_where_it_was(tmp_path: Path) -> None:
    """The log has the Python stack of a segmentation fault, and the error names the log."""
    with running(tmp_path, DEMO) as provider:
        with pytest.raises(WorkerDied) as caught:
            ask(provider, "crash")
        assert caught.value.next_step.endswith("demo.log")
        assert eventually(lambda: "Fatal Python error: Segmentation fault" in log_of(tmp_path))


def test_a_call_that_waits_is_kept_for_a_while(tmp_path: Path) -> None:
    """A call past its limit in a process that answers goes on: its result is still of use."""
    with running(tmp_path, DEMO, limits=SHORT) as provider:
        before = ask(provider, "pid")
        assert ask(provider, "sleep", 1.0) == "slept"
        assert ask(provider, "pid") == before


def test_a_call_that_waits_for_ever_is_ended(tmp_path: Path) -> None:
    """At the hard limit the process is killed, although it answers."""
    limits = Limits(tool_call=0.2)
    with running(tmp_path, DEMO, limits=limits, patience=0.2) as provider:
        with pytest.raises(WorkerDied, match=r"had not answered handle_tool_call after 0\.4 s"):
            ask(provider, "sleep", 600)
        assert ask(provider, "echo", "on") == "on"


@pytest.mark.parametrize(
    "action",
    [
        'print("noise\\x00" * 1000)',
        'sys.stderr.write("noise")',
        'os.write(1, b"noise" * 100000)',
        'subprocess.run(["echo", "noise"])',
    ],
)
def test_what_a_plugin_prints_goes_to_its_log(action: str, tmp_path: Path) -> None:
    """Printing, by whatever way, disturbs no answer."""
    with running(tmp_path, DEMO) as provider:
        assert ask(provider, "execute", action) == "done"
        assert ask(provider, "echo", "calm") == "calm"
        assert eventually(lambda: "noise" in log_of(tmp_path))


def test_printing_at_import_is_no_problem(tmp_path: Path) -> None:
    """What is printed while the plugin is imported goes to the log as well."""
    with running(tmp_path, 'print("good morning")\n' + DEMO) as provider:
        assert ask(provider, "echo", 1) == 1
        assert eventually(lambda: "good morning" in log_of(tmp_path))


@pytest.mark.parametrize(
    "action",
    [
        "sys.stdout = sys.stderr = None",
        "os.close(0); os.close(1); os.close(2)",
        "os.chdir('/')",
        "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)]",
        "signal.alarm(0); signal.setitimer(signal.ITIMER_REAL, 1000)",
        "threading.excepthook = sys.excepthook = None",
        "sys.path.clear()",
        "sys.setswitchinterval(0.0001)",
    ],
)
def test_a_plugin_may_treat_its_process_as_its_own(action: str, tmp_path: Path) -> None:
    """Its streams, folder and signal handlers are its own: calls go on, and it can still be ended."""
    with running(tmp_path, DEMO) as provider:
        assert ask(provider, "execute", action) == "done"
        assert ask(provider, "echo", "on") == "on"
        pid = ask(provider, "pid")
    assert not is_running(pid)


def test_a_server_that_it_started_dies_with_it(tmp_path: Path) -> None:
    """Programs that a plugin starts are ended with it, by the end of the profile and by a crash alike."""
    start = "subprocess.Popen(['sleep', '1000']).pid"
    forked = "subprocess.Popen(['sh', '-c', 'sleep 1000 & wait'], close_fds=False).pid"
    with running(tmp_path, DEMO) as provider:
        servers = [ask(provider, "evaluate", one) for one in (start, forked)]
        assert all(map(is_running, servers))
        with pytest.raises(WorkerDied):
            ask(provider, "exit")
        assert eventually(lambda: not any(map(is_running, servers)))
        servers = [ask(provider, "evaluate", start)]
    assert eventually(lambda: not any(map(is_running, servers)))


def test_a_fork_of_it_does_not_hide_its_end(tmp_path: Path) -> None:
    """A child that was forked without a program of its own holds the pipe: the end is noticed all the same."""
    with running(tmp_path, DEMO) as provider:
        child = ask(provider, "evaluate", "os.fork() or time.sleep(1000)")
        with pytest.raises(WorkerDied, match="exit code 3"):
            ask(provider, "exit")
        assert eventually(lambda: not is_running(child))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("'x' * (17 << 20)", "bytes as JSON; 16777216 (16 MiB) are the most"),
        ("float('nan')", "result is nan, which is not JSON"),
        ("{1, 2}", "result is a set, which is not JSON"),
        ("[{'a': [1, b'']}]", "result[0].a[1] is a bytes, which is not JSON"),
        ("{(1, 2): 3}", "result has a key that is a tuple, which is not JSON"),
        ("(lambda l: (l.append(l), l)[1])([])", "is nested too deeply"),
    ],
)
def test_what_is_not_json_is_refused_by_name(value: str, named: str, tmp_path: Path) -> None:
    """The error says which part of the result it was; the process goes on."""
    with running(tmp_path, DEMO) as provider:
        pid = ask(provider, "pid")
        with pytest.raises(Unsendable) as caught:
            ask(provider, "evaluate", value)
        assert caught.value.message.startswith("handle_tool_call returned what cannot be sent: ")
        assert named in caught.value.message
        assert ask(provider, "pid") == pid


def test_what_cannot_be_sent_to_it_is_refused_by_name(tmp_path: Path) -> None:
    """An argument that is not JSON is named; a path is sent as text."""
    with running(tmp_path, DEMO) as provider:
        with pytest.raises(Unsendable, match=r"args\[1\]\[0\] is a set"):
            ask(provider, "echo", {1, 2})
        assert ask(provider, "echo", Path("/a/b")) == "/a/b"
        assert ask(provider, "echo", "half of an emoji \ud83d") == "half of an emoji \ud83d"


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_what_is_no_exception_ends_in_its_call(name: str, tmp_path: Path) -> None:
    """SystemExit and its like end neither the worker nor the host."""
    with running(tmp_path, DEMO) as provider:
        pid = ask(provider, "pid")
        with pytest.raises(CallFailed, match=f"handle_tool_call raised {name}: 4"):
            ask(provider, "execute", f"raise {name}(4)")
        assert ask(provider, "pid") == pid


@pytest.mark.parametrize("body", ["os._exit(3)", "raise SystemExit(3)", "nonsense", "import no_such_module"])
def test_a_plugin_that_does_not_load_says_why(body: str, tmp_path: Path) -> None:
    """The reason is that of its own import, with file and line where there is one."""
    with pytest.raises(LoadFailed) as caught, running(tmp_path, f"{body}\n{DEMO}"):
        pass
    reasons = {
        "os._exit(3)": "the process of demo ended by itself with exit code 3",
        "raise SystemExit(3)": "SystemExit: 3",
        "nonsense": "NameError: name 'nonsense' is not defined",
        "import no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
    }
    assert reasons[body] in str(caught.value)
    if "_exit" not in body:
        assert caught.value.file.endswith("demo/__init__.py")
        assert caught.value.line > 0


def test_the_log_is_private_and_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is 0600 in folders of 0700, made with the first output, and put aside when it is large."""
    with running(tmp_path, DEMO) as provider:
        logs = tmp_path / "home" / "logs"
        assert ask(provider, "echo", 1) == 1
        assert not logs.exists(), "nothing was printed"
        ask(provider, "execute", "for _ in range(40): print('x' * 100_000)")
        log = logs / "plugins" / "demo.log"
        assert eventually(lambda: log.exists() and log.with_name("demo.log.1").exists())
        assert {path.stat().st_mode & 0o777 for path in (logs, logs / "plugins")} == {0o700}
        ask(provider, "execute", "print('the end')")
        assert eventually(lambda: "the end" in log_of(tmp_path))
        for file in log.parent.iterdir():
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.stat().st_size < 2 * keeper.LARGEST_LOG


def test_what_is_forgotten_leaves_the_log(tmp_path: Path) -> None:
    """Lines that quote it are taken out, and what is printed later goes into the same file."""
    with running(tmp_path, DEMO) as provider:
        ask(provider, "execute", "print('likes tea'); print('other')")
        assert eventually(lambda: "other" in log_of(tmp_path))
        assert scrub(tmp_path / "home" / "logs", "likes tea") == 1
        assert "likes tea" not in log_of(tmp_path)
        ask(provider, "execute", "print('later')")
        assert eventually(lambda: "later" in log_of(tmp_path))
        assert "other" in log_of(tmp_path)


def test_a_log_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    """A plugin that prints goes on where the home is gone or full."""
    with running(tmp_path, DEMO) as provider:
        (tmp_path / "home" / "logs").write_text("a file in the way")
        assert ask(provider, "execute", "for _ in range(100): print('x' * 10_000)") == "done"
        assert ask(provider, "echo", "on") == "on"


def test_a_message_that_is_none_ends_the_process(tmp_path: Path) -> None:
    """A plugin that writes into the pipe itself is stopped, and the reason said."""
    garbage = (
        "[os.write(fd, b'\\xff\\xff\\xff\\x7f' * 4) for fd in range(3, 20)"
        " if os.path.exists(f'/proc/self/fd/{fd}') and os.get_blocking(fd) is False]"
    )
    with running(tmp_path, DEMO) as provider:
        with pytest.raises(WorkerDied, match="sent a message of 2147483647 bytes"):
            ask(provider, "execute", garbage)
        assert ask(provider, "echo", "on") == "on"


def test_a_signal_from_outside_ends_like_a_crash(tmp_path: Path) -> None:
    """Somebody who kills the worker costs nothing: it is started again for the next call."""
    with running(tmp_path, DEMO) as provider:
        provider.initialize("s1")
        pid = ask(provider, "pid")
        os.kill(pid, signal.SIGTERM)
        assert eventually(lambda: provider._worker.pid is None)
        assert ask(provider, "session_now") == "s1"
