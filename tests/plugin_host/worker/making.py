"""Plugins written into a folder, run in a worker process of their own."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hermes.memory.lanes import Limits
from hermes.plugin_host.worker.opening import environment
from hermes.plugin_host.worker.provider import WorkerProvider
from hermes.plugin_host.worker.restarting import Worker

ENOUGH = Limits(prefetch=20, tool_call=20, hook=20, initialize=20, session_end=20, shutdown=5)
"""Limits that only something stuck exceeds, also on a machine that is busy."""
SHORT = Limits(prefetch=0.5, tool_call=0.5, hook=0.5, initialize=20, session_end=0.5, shutdown=5)

HEAD = """
    import ctypes, itertools, json, os, re, signal, subprocess, sys, threading, time
    from hermes.errors import PermanentError
    from hermes.memory.provider import MemoryProvider, RecallStatus

    class Base(MemoryProvider):
        name = "demo"
        delivery = "stored"
        session = None

        def is_available(self):
            return True

        def initialize(self, session_id, **kwargs):
            self.session = session_id
            self.kwargs = kwargs

        def get_tool_schemas(self):
            return []
"""
"""The start of a plugin: what most need, and a base class with the abstract members."""
TAIL = """
    def register(ctx):
        ctx.register_memory_provider(Demo())
"""


class Answering:
    """A host that answers what it is given for each name, and keeps what it was asked."""

    def __init__(self, home: Path, **answers: Callable[..., Any]) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._answers: dict[str, Callable[..., Any]] = {
            "home": lambda: str(home),
            "profile_name": lambda: "default",
            **answers,
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*args: Any, **kwargs: Any) -> Any:
            self.asked.append((name, *args, *([kwargs] if kwargs else [])))
            return self._answers[name](*args, **kwargs)

        return answer


def write_plugin(folder: Path, body: str, *, name: str = "demo") -> dict[str, Any]:
    """A plugin folder with HEAD, *body* and, where that has no ``register``, TAIL as its code; its spec."""
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    parts = (HEAD, body) if "def register(" in body else (HEAD, body, TAIL)
    code = "".join(map(textwrap.dedent, parts))
    (path / "__init__.py").write_text(code)
    return {
        "name": name,
        "kind": "memory",
        "path": str(path),
        "root": str(path),
        "entry": "",
        "bundled": False,
    }


@contextmanager
def running(
    folder: Path,
    body: str,
    *,
    limits: Limits = ENOUGH,
    patience: float = 20.0,
    host: Any = None,
    environ: Mapping[str, str] | None = None,
    name: str = "demo",
) -> Iterator[WorkerProvider]:
    """The provider ``Demo`` of *body* in a worker, closed at the end; its home is *folder* / home."""
    spec = write_plugin(folder, body, name=name)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    variables = environment("default", home, {}, os.environ if environ is None else environ)
    worker = Worker(
        spec,
        {},
        environment=variables,
        log=home / "logs" / "plugins" / f"{name}.log",
        host=host or Answering(home),
        limits=limits,
        patience=patience,
    )
    provider = WorkerProvider(worker)
    try:
        yield provider
    finally:
        provider.close()


def log_of(folder: Path, *, name: str = "demo") -> str:
    """What the plugin has printed; the file is made with the first of it."""
    path = folder / "home" / "logs" / "plugins" / f"{name}.log"
    return path.read_text(errors="replace") if path.exists() else ""


def eventually(holds: Callable[[], object], seconds: float = 20.0) -> bool:
    """True as soon as *holds* is; False if it is not after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.01)
    return bool(holds())


def is_running(pid: int) -> bool:
    """True if there is a process of that number that has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def session_of(pid: int) -> list[int]:
    """The processes that run in the session that the process *pid* leads, or led."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] != "Z" and int(fields[3]) == pid:
            found.append(int(stat.parent.name))
    return found
