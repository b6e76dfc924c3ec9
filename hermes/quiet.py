"""Import a library without what it would pull in and hermes never uses; nothing stays behind.

Two libraries import every framework they can integrate with, whether it is used or not: a start that takes
a tenth of a second where Django is installed and a hundredth where it is not. Standard library only.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

UNWANTED: Mapping[str, Sequence[str]] = {
    "dynaconf": ("jinja2", "configobj", "commentjson"),
    "dependency_injector": (
        "pydantic",
        "pydantic_settings",
        "fastapi",
        "starlette",
        "flask",
        "werkzeug",
        "fast_depends",
        "yaml",
    ),
}
"""Packages that a library imports where they are installed."""

POSTPONED: Mapping[str, Mapping[str, Sequence[str]]] = {
    "dynaconf": {
        "dynaconf.contrib": ("DjangoDynaconf", "FlaskDynaconf"),
        "dynaconf.utils.inspect": ("get_history", "inspect_settings"),
    },
}
"""Modules of the library itself, and what it offers from them: imported when somebody asks for it."""


class _Absent:
    """A finder that says "not installed" to one thread for a few names."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Refuse the names; leave every other import, and every other thread, to the finders that follow."""
        if name.partition(".")[0] in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def importing(library: str) -> Iterator[None]:
    """Hide the optional packages of *library* from the imports that this thread does inside the block.

    A package that is imported already stays reachable: the application uses it. Never done by ``None`` in
    ``sys.modules``, which every other thread would see. Raises ``KeyError`` for a library that is not listed.
    """
    finder = _Absent(frozenset(name for name in UNWANTED[library] if name not in sys.modules))
    resume = _postpone(library)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        resume()


@contextmanager
def asyncio_later() -> Iterator[None]:
    """Have what is imported inside the block find an ``asyncio`` that is imported when it is first used.

    For a process of our own that has a single thread yet: every thread would see it. Nothing happens where
    asyncio is imported already.
    """
    if "asyncio" in sys.modules:
        yield
        return
    stand_in = ModuleType("asyncio")
    vars(stand_in).update(
        {name: _when_called("asyncio", name) for name in ("Future", "ensure_future", "gather")}
    )
    sys.modules["asyncio"] = stand_in
    try:
        yield
    finally:
        if sys.modules.get("asyncio") is stand_in:
            del sys.modules["asyncio"]


def _when_called(module: str, name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(import_module(module), name)(*args, **kwargs)


def _postpone(library: str) -> Callable[[], None]:
    """Put an empty module in the place of each postponed one; the result takes them away again."""
    postponed = POSTPONED.get(library, {})
    if library in sys.modules:
        return lambda: None
    home_of = {offer: name for name, offers in postponed.items() for offer in offers}
    stand_ins = {name: ModuleType(name) for name in postponed}
    for name, module in stand_ins.items():
        vars(module).update(dict.fromkeys(postponed[name]))
    sys.modules.update(stand_ins)

    def resume() -> None:
        for name, module in stand_ins.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        if package := sys.modules.get(library):
            for offer in home_of:
                vars(package).pop(offer, None)
            if home_of:
                vars(package)["__getattr__"] = _later(library, home_of)

    return resume


def _later(library: str, home_of: Mapping[str, str]) -> Callable[[str], Any]:
    def attribute(name: str) -> Any:
        if name in home_of:
            return getattr(import_module(home_of[name]), name)
        raise AttributeError(f"module {library!r} has no attribute {name!r}")

    return attribute
