"""What stands for a provider in another process: its members, its errors, what it asks, what it is told again."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import (
    ConfigError,
    HermesError,
    PermanentError,
    Problem,
    ProviderUnavailable,
    StaleActiveProfile,
)
from hermes.memory.lanes import Limits
from hermes.memory.provider import RecallStatus
from hermes.memory.seat import Seat
from hermes.memory.signatures import shape_of
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.loading import load
from hermes.plugin_host.worker import restarting
from hermes.plugin_host.worker.describing import MEMBERS
from hermes.plugin_host.worker.failures import PluginError
from hermes.plugin_host.worker.provider import WorkerProvider
from tests.plugin_host.worker.making import (
    ENOUGH,
    Answering,
    eventually,
    is_running,
    log_of,
    running,
    write_plugin,
)

STRANGE = """
    import functools

    def passing(fn):
        @functools.wraps(fn)
        def outer(*args, **kwargs):
            return fn(*args, **kwargs)
        return outer

    class Demo(Base):
        name = "plain-attribute"
        delivery = "accepted"
        pre_compress_checkpoint_api_version = 2

        def sync_turn(self, user, answer): ...
        @passing
        def prefetch(self, words, session_id=None): return words
        def on_memory_write(self, action, target, content, facts): ...
        def on_session_switch(self, new, /, *, parent_session_id="", **rest): ...
        async def queue_prefetch(self, query, *, session_id=""): self.queued = query
        handle_tool_call = len
        def post_setup(self, hermes_home, config): ...
"""
DUCK = """
    class Demo:
        name = "duck"
        def is_available(self): return True
        def initialize(self, session_id, **kwargs): ...
        def get_tool_schemas(self): return []
        def prefetch(self, query): return "quack"
"""


@pytest.mark.parametrize("body", [STRANGE, DUCK], ids=["strange", "duck"])
def test_it_looks_as_the_real_one_does(body: str, tmp_path: Path) -> None:
    """Members, signatures and attributes are those of the object in the other process."""
    context = RegistrationContext("demo")
    load(write_plugin(tmp_path, body), context)
    real = Seat(context.registered.memory_provider, "real", ENOUGH, None)  # type: ignore[arg-type]
    with running(tmp_path, body) as provider:
        there = Seat(provider, "there", ENOUGH, None)  # type: ignore[arg-type]
        assert provider.name == real.provider.name
        for attribute in ("delivery", "pre_compress_checkpoint_api_version"):
            assert getattr(provider, attribute, None) == getattr(
                real.provider, attribute, getattr(WorkerProvider, attribute)
            )
        for hook in [*MEMBERS, "no_such_member"]:
            if hook == "shutdown":  # there is always a process to end
                continue
            assert there.implements(hook) == real.implements(hook), hook
            ours, theirs = there.members.get(hook), real.members.get(hook)
            assert (ours is None) == (theirs is None), hook
            if ours is not None and theirs is not None:
                assert shape_of(ours) == shape_of(theirs), hook


def test_what_it_takes_from_the_base_class_needs_no_process(tmp_path: Path) -> None:
    """A default of the contract is answered here."""
    with running(tmp_path, "class Demo(Base): ...\n") as provider:
        provider.close()
        assert provider.system_prompt_block() == ""
        assert provider.search_records("x") is None
        assert provider.get_status_config({"a": 1, "b": []}) == {"a": 1}


def test_a_name_that_cannot_be_read_raises(tmp_path: Path) -> None:
    """A property that raises does so here as well."""
    body = """
    class Demo(Base):
        @property
        def name(self): raise KeyError("no name")
    """
    with running(tmp_path, body) as provider, pytest.raises(PluginError, match="no name"):
        _ = provider.name


def test_what_a_start_changes_is_seen(tmp_path: Path) -> None:
    """Members and attributes that an object gets when it is started count from then on."""
    body = """
    class Demo(Base):
        delivery = "accepted"
        def initialize(self, session_id, **kwargs):
            self.delivery = "stored"
            self.prefetch = lambda query: f"about {query}"
    """
    with running(tmp_path, body) as provider:
        seat = Seat(provider, "demo", ENOUGH, None)  # type: ignore[arg-type]
        assert (seat.stores, seat.implements("prefetch")) == (False, False)
        provider.initialize("s1")
        assert (seat.stores, seat.implements("prefetch")) == (True, True)
        assert provider.prefetch("tea") == "about tea"


ERRORS = """
    from pathlib import Path
    from hermes.errors import ConfigError, EntryNotFound, Problem, StaleActiveProfile

    class OwnPermanent(PermanentError):
        pass

    class Unprintable(Exception):
        def __str__(self): raise ValueError

    class Demo(Base):
        def handle_tool_call(self, tool_name, args, **kwargs):
            raise eval(tool_name)
"""


def _raised(provider: WorkerProvider, expression: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is, is what is asked
        provider.handle_tool_call(expression, {})
    return caught.value


def test_errors_of_ours_arrive_as_they_were_raised(tmp_path: Path) -> None:
    """Class, message, next step, exit code and fields are the same; a class of the plugin's own is its base."""
    raised: list[tuple[str, HermesError]] = [
        ("PermanentError('no', next_step='stop')", PermanentError("no", next_step="stop")),
        ("StaleActiveProfile('work', Path('/x'))", StaleActiveProfile("work", Path("/x"))),
        (
            "ConfigError([Problem('a.b', 'is odd', Path('/c'), 3)])",
            ConfigError([Problem("a.b", "is odd", Path("/c"), 3)]),
        ),
    ]
    with running(tmp_path, ERRORS) as provider:
        for expression, expected in raised:
            error = _raised(provider, expression)
            assert type(error) is type(expected)
            assert vars(error) == vars(expected)
            assert error.as_dict() == expected.as_dict()
        assert type(_raised(provider, "OwnPermanent('never')")) is PermanentError


def test_foreign_errors_arrive_with_their_name_and_place(tmp_path: Path) -> None:
    """The class has the name of the real one; file and line are those in the plugin."""
    with running(tmp_path, ERRORS) as provider:
        error = _raised(provider, "OSError(5, 'broken')")
        assert isinstance(error, PluginError)
        assert (type(error).__name__, str(error)) == ("OSError", "[Errno 5] broken")
        line = Path(error.file).read_text().splitlines()[error.line - 1]
        assert line.strip() == "raise eval(tool_name)"
        assert "cannot be shown: ValueError" in str(_raised(provider, "Unprintable()"))


ASKING = """
    class Demo(Base):
        def initialize(self, session_id, **kwargs):
            super().initialize(session_id, **kwargs)
            self.said = kwargs["status_callback"]("starting", n=1)

        def prefetch(self, query, *, session_id=""):
            return f"{self.said}, then {self.kwargs['status_callback']('recalling')}"

        def handle_tool_call(self, tool_name, args, **kwargs):
            from hermes.compat import current
            host = current.host()
            if tool_name == "keep":
                self.kept = kwargs["progress"]
                return self.kept(50)
            if tool_name == "kept":
                return self.kept(51)
            return getattr(host, tool_name)(**args)
"""


def test_functions_go_through_the_pipe(tmp_path: Path) -> None:
    """What initialize is given can be called from then on; what a call is given, during that call."""
    told: list[Any] = []

    def status(text: str, n: int = 0) -> str:
        told.append((text, n))
        return text.upper()

    with running(tmp_path, ASKING) as provider:
        provider.initialize("s1", status_callback=status)
        assert provider.prefetch("x") == "STARTING, then RECALLING"
        assert told == [("starting", 1), ("recalling", 0)]
        kept: Any = provider.handle_tool_call("keep", {}, progress=lambda n: n * 2)
        assert kept == 100
        error = _raised(provider, "kept")
        assert "has returned" in str(error)


def test_the_host_can_be_asked_in_a_call(tmp_path: Path) -> None:
    """The host answers during a call; its errors are raised in the plugin and go on from there."""

    def refuse(**_: Any) -> Any:
        raise ProviderUnavailable("model", "none is set", next_step="set one")

    host = Answering(tmp_path, call_llm=lambda **request: {"echo": request}, load_config=refuse)
    with running(tmp_path, ASKING, host=host) as provider:
        answer: Any = provider.handle_tool_call("call_llm", {"messages": [{"role": "user"}]})
        assert answer == {"echo": {"messages": [{"role": "user"}]}}
        with pytest.raises(ProviderUnavailable) as caught:
            provider.handle_tool_call("load_config", {})
        assert (caught.value.reason, caught.value.next_step) == ("none is set", "set one")
        assert "AttributeError" in type(_raised(provider, "__class__.__init__.__globals__")).__name__
        assert isinstance(_raised(provider, "environ"), PluginError), "a host is asked what Host has"


def test_a_host_that_takes_its_time_holds_nothing_else(tmp_path: Path) -> None:
    """While the host thinks about one question, other calls are answered."""
    waiting, go_on = threading.Event(), threading.Event()

    def think(**_: Any) -> str:
        waiting.set()
        assert go_on.wait(20)
        return "thought"

    with running(tmp_path, ASKING, host=Answering(tmp_path, call_llm=think)) as provider:
        answers: list[Any] = []
        asking = threading.Thread(target=lambda: answers.append(provider.handle_tool_call("call_llm", {})))
        asking.start()
        assert waiting.wait(20)
        provider.sync_turn("a", "b")
        go_on.set()
        asking.join(20)
        assert answers == ["thought"]


MANY = """
    import asyncio, contextvars

    class Demo(Base):
        async def prefetch(self, query, *, session_id=""):
            await asyncio.sleep(0)
            return f"awaited {query}"

        def recall_status(self):
            return RecallStatus("Demo", 3)

        def export_records(self):
            for number in range(30):
                yield {"id": number, "text": "x" * 1_000_000}

        def get_status_config(self, provider_config):
            return {"tuple": (1, 2), 3: "three"}
"""


def test_results_of_every_kind_arrive(tmp_path: Path) -> None:
    """Coroutines are awaited there, an indicator is one again, an export of any size comes in parts."""
    with running(tmp_path, MANY) as provider:
        assert provider.prefetch("tea") == "awaited tea"
        assert provider.recall_status() == RecallStatus("Demo", 3)
        assert provider.get_status_config({}) == {"tuple": [1, 2], "3": "three"}
        records = provider.export_records()
        assert records is not None
        assert [record["id"] for record in records] == list(range(30))


def test_an_export_does_not_go_on_in_another_process(tmp_path: Path) -> None:
    """What was begun in a process that has ended is an error, not the records of somebody else."""
    with running(tmp_path, MANY + "        def backup_paths(self): os._exit(1)\n") as provider:
        records = iter(provider.export_records() or ())
        assert next(records)["id"] == 0
        with pytest.raises(HermesError):
            provider.backup_paths()
        provider.export_records()
        with pytest.raises(HermesError, match="the export cannot go on"):
            list(records)


HOOKED = """
    class Demo(Base): ...

    def register(ctx):
        ctx.register_memory_provider(Demo())
        ctx.register_hook("pre_llm_call", lambda user_message, **_: {"context": f"knows {user_message}"})
        ctx.register_hook("pre_llm_call", lambda: 1 / 0)
        ctx.register_hook("gateway_start", print)
        ctx.register_tool(name="extra", toolset="x", schema={"name": "extra"}, handler=print)
        ctx.register_platform("matrix")
"""


def test_hooks_are_called_through_the_pipe(tmp_path: Path) -> None:
    """Each callback of a hook is called with what it accepts; what one raises is said."""
    with running(tmp_path, HOOKED) as provider:
        assert provider.hook_names == ["pre_llm_call", "gateway_start"]
        answers, errors = provider.call_hook("pre_llm_call", {"user_message": "tea", "model": "m"})
        assert answers == [{"context": "knows tea"}]
        assert errors == ["ZeroDivisionError: division by zero"]
        assert provider.registered.unused() == [
            "hook gateway_start",
            "tool extra",
            "register_platform: matrix",
        ]


SESSIONS = """
    class Demo(Base):
        def on_session_switch(self, new_session_id, **kwargs):
            self.session = new_session_id

        def handle_tool_call(self, tool_name, args, **kwargs):
            if tool_name == "exit":
                os._exit(1)
            return {"session": self.session, "given": sorted(self.kwargs)}
"""


def test_a_new_process_is_started_for_the_session_of_now(tmp_path: Path) -> None:
    """After a crash ``initialize`` is repeated with what it was given, for the session that was switched to."""
    with running(tmp_path, SESSIONS) as provider:
        provider.initialize("s1", hermes_home="/h", warning_callback=print)
        provider.on_session_switch("s2", parent_session_id="s1")
        _raised(provider, "exit")
        answer: Any = provider.handle_tool_call("which", {})
        assert answer == {"session": "s2", "given": ["hermes_home", "warning_callback"]}


def test_a_process_that_ends_after_every_start_is_started_less_and_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first end is followed by a start at once, further ones by pauses in which calls fail at once."""
    monkeypatch.setattr(restarting, "FIRST_PAUSE", 1000.0)
    monkeypatch.setattr(restarting, "LAST_PAUSE", 1500.0)
    body = """
    open(os.environ["HERMES_HOME"] + "/starts", "a").write("x")

    class Demo(Base):
        def prefetch(self, query): os._exit(7)
    """
    with running(tmp_path, body) as provider:
        for _ in range(2):
            assert "exit code 7" in str(_raised_by_prefetch(provider))
        for _ in range(5):
            error = _raised_by_prefetch(provider)
            assert isinstance(error, ProviderUnavailable)
            assert "exit code 7; it is started again in" in error.reason
        assert (tmp_path / "home" / "starts").read_text() == "xx"


def test_pauses_double_and_end_with_a_steady_run() -> None:
    """Pauses grow to the longest one; a process that ran well for a while is started again at once."""
    backoff = restarting.Backoff()
    pauses = []
    for _ in range(12):
        backoff.ended(100.0, 101.0)
        pauses.append(backoff.left(101.0))
    assert pauses[:4] == [0.0, 1.0, 2.0, 4.0]
    assert pauses[-1] == restarting.LAST_PAUSE
    backoff.ended(0.0, restarting.STEADY)
    assert backoff.left(restarting.STEADY) == 0.0


def _raised_by_prefetch(provider: WorkerProvider) -> Exception:
    with pytest.raises(HermesError) as caught:
        provider.prefetch("x")
    return caught.value


ENDING = """
    import atexit
    atexit.register(lambda: open(os.environ["HERMES_HOME"] + "/end", "a").write("left"))

    class Demo(Base):
        delivery = "accepted"
        def handle_tool_call(self, tool_name, args, **kwargs): os._exit(1)
        def shutdown(self): open(os.environ["HERMES_HOME"] + "/end", "a").write("shut ")
"""


def test_a_shutdown_ends_the_process_in_good_order(tmp_path: Path) -> None:
    """``shutdown`` is called, then the process runs what it registered for its exit and is gone."""
    with running(tmp_path, ENDING) as provider:
        provider.initialize("s1")
        pid = provider._worker.pid
        assert pid is not None
        provider.shutdown()
        assert not is_running(pid)
        assert (tmp_path / "home" / "end").read_text() == "shut left"
        with pytest.raises(ProviderUnavailable, match="its process was ended"):
            provider.handle_tool_call("x", {})
        provider.initialize("s2")
        assert provider._worker.pid not in (None, pid)


def test_a_shutdown_after_a_crash_confirms_nothing(tmp_path: Path) -> None:
    """A provider that only accepts what it is given may have lost it: its shutdown says so."""
    for stored in (False, True):
        body = ENDING.replace('"accepted"', '"stored"') if stored else ENDING
        with running(tmp_path, body) as provider:
            provider.initialize("s1")
            _raised(provider, "exit")
            if stored:
                provider.shutdown()
            else:
                with pytest.raises(
                    ProviderUnavailable, match="exit code 1; what it had taken over may be lost"
                ):
                    provider.shutdown()


def test_one_that_is_thrown_away_takes_its_process_with_it(tmp_path: Path) -> None:
    """A provider that nobody closed ends its process when it is collected."""
    context = running(tmp_path, "class Demo(Base): ...\n")
    provider = context.__enter__()
    pid = provider._worker.pid
    assert pid is not None
    del provider, context
    gc.collect()
    assert eventually(lambda: not is_running(pid))


def test_limits_follow_the_member(tmp_path: Path) -> None:
    """Recall has the limit of recall, a tool that of tools; the process is ended by the one that is exceeded."""
    body = """
    class Demo(Base):
        def prefetch(self, query): return re.match(r"(a+)+$", "a" * 40 + "b")
        def handle_tool_call(self, tool_name, args, **kwargs): time.sleep(0.5); return "done"
    """
    limits = Limits(prefetch=0.1, tool_call=20, hook=20, initialize=20)
    with running(tmp_path, body, limits=limits) as provider:
        assert provider.handle_tool_call("x", {}) == "done"
        assert "prefetch within 0.1 s" in str(_raised_by_prefetch(provider))


def test_the_log_has_what_its_threads_print(tmp_path: Path) -> None:
    """A warning of the logging module, which goes to stderr, is in the log too."""
    body = """
    import logging
    class Demo(Base):
        def prefetch(self, query):
            logging.getLogger("demo").warning("low on tea")
            return json.dumps({"n": threading.active_count()})
    """
    with running(tmp_path, body) as provider:
        assert json.loads(provider.prefetch("x"))["n"] >= 2
        assert eventually(lambda: "low on tea" in log_of(tmp_path))
