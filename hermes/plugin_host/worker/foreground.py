"""A plugin in a child that has the terminal: its command tree, and a setup of its own that asks the person.

The child has the streams of this process and gets its Ctrl-C; what the plugin asks of its host comes through a
pipe, as in a worker. Where the child reports what was raised in it, that is raised here.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hermes.plugin_host.host import Host
from hermes.plugin_host.worker.child import TURN
from hermes.plugin_host.worker.failures import PluginError, unpack
from hermes.plugin_host.worker.process import answer_question, launch, questions_to
from hermes.plugin_host.worker.protocol import Message

Spec = Mapping[str, Any]


def run_tree(
    spec: Spec, argv: Sequence[str], *, prog: str, environment: Mapping[str, str], host: Host
) -> int:
    """Run the command tree of the plugin of *spec* with the words *argv*; its exit code.

    *prog* is how it was called, *environment* all that the child gets. Raises KeyboardInterrupt where it was
    ended so, and what a handler raised.
    """
    return _code(_done("tree", [spec, argv, prog], environment, host))


def words_of_tree(
    spec: Spec,
    given: Sequence[str],
    incomplete: str,
    *,
    prog: str,
    environment: Mapping[str, str],
    host: Host,
) -> list[tuple[str, str]]:
    """What can stand after the words *given* and starts with *incomplete*, each with its help; prints nothing."""
    found = _done("words", [spec, given, incomplete, prog], environment, host, silent=True)
    return [(word, text) for word, text in found] if isinstance(found, list) else []


def run_post_setup(
    spec: Spec,
    manifest: Mapping[str, Any],
    home: str,
    config: Mapping[str, Any],
    *,
    environment: Mapping[str, str],
    host: Host,
) -> int:
    """Let the provider of *spec* set itself up by ``post_setup(home, config)``; 0, or the code it exited with.

    Raises KeyboardInterrupt, and what it or its import raised.
    """
    return _code(_done("post_setup", [spec, manifest, home, config], environment, host))


def _done(
    method: str, args: list[Any], environment: Mapping[str, str], host: Host, *, silent: bool = False
) -> Any:
    """What a child of its own answers to *method*; its exit code where it ended without an answer."""
    with _its_own_interrupt():
        popen, peer = launch(environment, terminal=True, silent=silent)

        def take(message: Message) -> None:
            arguments = (peer, message, questions_to(host))
            threading.Thread(target=answer_question, args=arguments, daemon=True).start()

        listening = threading.Thread(target=peer.run, args=(take,), name="hermes-foreground", daemon=True)
        listening.start()
        answer: Message | None
        try:
            job = {"on": "child", "method": method, "args": args, "kwargs": {}, "lane": TURN}
            answer = peer.ask(job).wait()
            peer.send({"end": True})
        except (EOFError, OSError):
            answer = None
        finally:
            peer.close()
            popen.wait()
    listening.join()
    if answer is None:
        return popen.returncode
    if "error" in answer:
        raise _raised(answer["error"])
    return answer["result"]


def _raised(packed: dict[str, Any]) -> BaseException:
    error = unpack(packed)
    interrupted = isinstance(error, PluginError) and type(error).__name__ == KeyboardInterrupt.__name__
    return KeyboardInterrupt() if interrupted else error


def _code(result: Any) -> int:
    """An exit code, as a shell gives it for a child that a signal ended."""
    code = int(result or 0)
    return code if code >= 0 else 128 - code


@contextmanager
def _its_own_interrupt() -> Iterator[None]:
    """Leave Ctrl-C to the child meanwhile: it gets it as well, and says what comes of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which the child would inherit
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
