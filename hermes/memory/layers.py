"""What a callable says of its parameters, and what the functions that it wraps say of theirs.

Standard library only: worker processes import this module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

_DEEPEST = 20  # decorators of decorators that are looked into


def signatures(fn: Callable[..., Any]) -> Iterator[inspect.Signature]:
    """The signature of *fn*, then of what it wraps, each bound as *fn* is; until one is not known."""
    for layer in _layers(fn):
        try:
            yield inspect.signature(layer, follow_wrapped=False)
        except (ValueError, TypeError):
            return


def _layers(fn: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    layer: Any = fn
    for _ in range(_DEEPEST):
        yield layer
        function = getattr(layer, "__func__", layer)
        inner = getattr(function, "__dict__", {}).get("__wrapped__")
        if not callable(inner):
            return
        bound = function is not layer and inspect.isfunction(inner)
        layer = inner.__get__(layer.__self__) if bound else inner
