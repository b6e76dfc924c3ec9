"""The settings of a profile: layers of files and variables, merged, checked once, frozen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hermes.settings.layers import Layer, layers_of
from hermes.settings.loading import load
from hermes.settings.schema import Settings, active_provider

if TYPE_CHECKING:
    from hermes.settings.checking import check
    from hermes.settings.origins import Origin, origin
    from hermes.settings.writing import Written, change, set_value, unset_value

__all__ = [
    "Layer",
    "Origin",
    "Settings",
    "Written",
    "active_provider",
    "change",
    "check",
    "layers_of",
    "load",
    "origin",
    "set_value",
    "unset_value",
]

_LATER = {
    "Origin": "origins",
    "Written": "writing",
    "change": "writing",
    "check": "checking",
    "origin": "origins",
    "set_value": "writing",
    "unset_value": "writing",
}


def __getattr__(name: str) -> Any:
    """What reading does not need is imported when it is asked for."""
    if module := _LATER.get(name):
        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
