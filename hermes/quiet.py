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

POSTPONED: Mapping[str, tuple[str, Sequence[str]]] = {
    "dynaconf": ("dynaconf.contrib", ("DjangoDynaconf", "FlaskDynaconf")),
}
"""A module of the library itself, and what the library offers from it: imported when somebody asks for it."""


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


def _postpone(library: str) -> Callable[[], None]:
    """Put an empty module in the place of the postponed one; the result takes it away again."""
    name, offers = POSTPONED.get(library, ("", ()))
    if not name or library in sys.modules:
        return lambda: None
    stand_in = ModuleType(name)
    vars(stand_in).update(dict.fromkeys(offers))
    sys.modules[name] = stand_in

    def resume() -> None:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        if (package := sys.modules.get(library)) is None:
            return
        for offer in offers:
            vars(package).pop(offer, None)

        def later(attribute: str) -> Any:
            if attribute in offers:
                return getattr(import_module(name), attribute)
            raise AttributeError(f"module {library!r} has no attribute {attribute!r}")

        vars(package)["__getattr__"] = later

    return resume
