"""A plugin in a child that has the terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import PermanentError
from hermes.plugin_host.worker.failures import PluginError
from hermes.plugin_host.worker.foreground import run_post_setup, run_tree, words_of_tree
from hermes.plugin_host.worker.opening import environment
from tests.plugin_host.worker.making import Answering, write_plugin

CLI = """
import os, signal, sys, time
from hermes_constants import get_hermes_home
from .names import GREETING

def register_cli(subparser):
    commands = subparser.add_subparsers(dest="command")
    commands.add_parser("greet", help="Say hello.").set_defaults(func=greet)
    commands.add_parser("ask")
    commands.add_parser("wait")
    commands.add_parser("exit").add_argument("code", type=int)
    commands.add_parser("signal")
    commands.add_parser("fail")
    commands.add_parser("refuse")
    commands.add_parser("secret")

def greet(args):
    print(GREETING, get_hermes_home(), os.environ.get("KEY"))

def demo_command(args):
    if args.command == "ask":
        print("you said", input("who? "))
    if args.command == "wait":
        print("waiting", flush=True)
        time.sleep(60)
    if args.command == "exit":
        os._exit(args.code)
    if args.command == "signal":
        os.kill(os.getpid(), signal.SIGTERM)
    if args.command == "fail":
        raise LookupError("no such note")
    if args.command == "refuse":
        from hermes.errors import PermanentError
        raise PermanentError("never", next_step="stop")
    if args.command == "secret":
        from hermes.compat import current
        print(current.host().secret("KEY"))
    return 5
"""
PLUGIN = """
    print("the package was imported")

    class Demo(Base):
        def post_setup(self, hermes_home, config):
            if config["how"] == "exit":
                sys.exit(4)
            if config["how"] == "raise":
                raise ValueError("not now")
            from hermes.compat import current
            name = input("name? ") if sys.stdin.isatty() else "nobody"
            current.host().save_config([[["memory", "demo", "name"], name]], [])
"""


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    """A plugin with a tree of commands and a setup of its own."""
    made = write_plugin(tmp_path, PLUGIN)
    (Path(made["path"]) / "cli.py").write_text(CLI)
    (Path(made["path"]) / "names.py").write_text("GREETING = 'hello from'\n")
    return made


def tree(spec: dict[str, Any], *words: str) -> int:
    """Run its tree with *words*."""
    home = Path(spec["path"]).parent / "home"
    host = Answering(home, secret=lambda name: f"secret of {name}")
    variables = environment("default", home, {"KEY": "value"}, os.environ, terminal=True)
    return run_tree(spec, words, prog="hermes demo", environment=variables, host=host)


def test_a_command_prints_where_this_process_prints(
    spec: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    """Its environment is the profile's, its host answers, and its package is not imported for it."""
    assert tree(spec, "greet") == 0
    assert tree(spec, "secret") == 5
    home = Path(spec["path"]).parent / "home"
    assert capfd.readouterr().out == f"hello from {home} value\nsecret of KEY\n"


def test_exit_codes_are_those_of_the_child(spec: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    """A handler's number, argparse's 0 and 2, a hard exit, and a signal as a shell counts it."""
    assert tree(spec, "exit", "7") == 7
    assert tree(spec, "signal") == 128 + signal.SIGTERM
    assert tree(spec, "--help") == 0
    assert "hermes demo" in capfd.readouterr().out
    assert tree(spec, "nonsense") == 2
    assert "invalid choice" in capfd.readouterr().err


def test_what_a_handler_raises_is_raised_here(spec: dict[str, Any]) -> None:
    """An error of ours as it is, another one by its name; the child prints no traceback."""
    with pytest.raises(PermanentError) as ours:
        tree(spec, "refuse")
    assert ours.value.next_step == "stop"
    with pytest.raises(PluginError, match="no such note") as foreign:
        tree(spec, "fail")
    assert type(foreign.value).__name__ == "LookupError"
    assert foreign.value.file.endswith("cli.py")


def test_completion_prints_nothing(spec: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    """What can stand next comes back as words with their help."""
    home = Path(spec["path"]).parent / "home"
    variables = environment("default", home, {}, os.environ)
    found = words_of_tree(spec, [], "g", prog="hermes demo", environment=variables, host=Answering(home))
    assert found == [("greet", "Say hello.")]
    assert capfd.readouterr() == ("", "")


def setup(spec: dict[str, Any], how: str, host: Any = None) -> int:
    """Run its setup without a terminal."""
    home = Path(spec["path"]).parent / "home"
    variables = environment("default", home, {}, os.environ, terminal=True)
    return run_post_setup(
        spec, {}, str(home), {"how": how}, environment=variables, host=host or Answering(home)
    )


def test_its_own_setup_saves_through_the_host(spec: dict[str, Any], tmp_path: Path) -> None:
    """``post_setup`` is called with the home and the settings; what it saves, the host saves."""
    host = Answering(tmp_path, save_config=lambda *_: None)
    assert setup(spec, "ask", host) == 0
    assert host.asked[-1] == ("save_config", [[["memory", "demo", "name"], "nobody"]], [])


def test_a_setup_that_fails_says_so(spec: dict[str, Any]) -> None:
    """An exit gives its code, an exception is raised here."""
    assert setup(spec, "exit") == 4
    with pytest.raises(PluginError, match="not now"):
        setup(spec, "raise")


IN_A_TERMINAL = """
import os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from hermes.plugin_host.worker.foreground import run_tree
from hermes.plugin_host.worker.opening import environment
from tests.plugin_host.worker.making import Answering
home = Path({home!r})
variables = environment("default", home, {{}}, os.environ, terminal=True)
try:
    code = run_tree({spec!r}, sys.argv[1:], prog="hermes demo", environment=variables, host=Answering(home))
except KeyboardInterrupt:
    code = 130
print("code", code)
"""


def in_terminal(spec: dict[str, Any], word: str, wait_for: bytes, keys: bytes) -> str:
    """What the terminal shows for *word*, when *keys* are typed after *wait_for* has appeared."""
    folder = Path(spec["path"]).parent
    script = folder / "script.py"
    script.write_text(
        textwrap.dedent(IN_A_TERMINAL).format(
            root=str(Path(__file__).parents[3]), home=str(folder / "home"), spec=spec
        )
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, str(script), word])
    shown, typed, deadline = b"", False, time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        shown += data
        if not data:
            break
        if not typed and wait_for in shown:
            typed = bool(os.write(terminal, keys))
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown.decode()


def test_it_has_the_terminal(spec: dict[str, Any]) -> None:
    """The child can ask the person, and is answered."""
    shown = in_terminal(spec, "ask", b"who? ", b"Ada\n")
    assert "you said Ada" in shown
    assert "code 5" in shown


def test_ctrl_c_reaches_it_and_this_process_goes_on(spec: dict[str, Any]) -> None:
    """Ctrl-C ends the child; here it is an interrupt, without a traceback of either."""
    shown = in_terminal(spec, "wait", b"waiting", b"\x03")
    assert "code 130" in shown
    assert "Traceback" not in shown
