"""What a worker tells its host of the objects it serves, so that the host can show the same in their place.

Standard library only: worker processes import this module.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from hermes.memory.layers import signatures
from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import Registered
from hermes.plugin_host.worker.failures import pack

MEMBERS = (
    *(name for name, value in vars(MemoryProvider).items() if name[0] != "_" and inspect.isfunction(value)),
    "post_setup",
    "sync_turns",
)
"""The methods of the contract, with those that the base class does not have."""
ATTRIBUTES = ("delivery", "pre_compress_checkpoint_api_version")
_DEFAULTS = vars(MemoryProvider)


def about(registered: Registered, folder: str) -> dict[str, Any]:
    """Everything that was registered, as JSON."""
    return {
        "provider": _provider(registered.memory_provider, folder),
        "hooks": [name for name, callbacks in registered.hooks.items() if callbacks],
        "tools": {name: _plain(facts) for name, facts in registered.tools.items()},
        "commands": registered.commands,
        "cli_commands": {name: _plain(facts) for name, facts in registered.cli_commands.items()},
        "other": registered.other,
        "problem": registered.problem,
    }


def layers(member: Any) -> list[list[tuple[str, str, bool]]]:
    """The parameters of *member* and of what it wraps: name, kind and whether there is a default."""
    return [
        [(p.name, p.kind.name, p.default is not p.empty) for p in signature.parameters.values()]
        for signature in signatures(member)
    ]


def _provider(provider: Any, folder: str) -> dict[str, Any] | None:
    """Its name and attributes, and the layers of each member that it has itself; None for one of the base class."""
    if provider is None:
        return None
    members: dict[str, Any] = {}
    for name in MEMBERS:
        member = getattr(provider, name, None)
        if callable(member):
            inherited = getattr(member, "__func__", None) is _DEFAULTS.get(name)
            members[name] = None if inherited else layers(member)
    found: dict[str, Any] = {"members": members, "attributes": _plain(_attributes(provider))}
    try:
        found["name"] = _value(provider.name)
    except Exception as exc:  # noqa: BLE001 - a property of a foreign class may raise anything; so does ours then
        found["nameless"] = pack(exc, folder)
    return found


def _attributes(provider: Any) -> dict[str, Any]:
    found = {}
    for name in ATTRIBUTES:
        try:
            found[name] = getattr(provider, name)
        except Exception:  # noqa: BLE001, S112 - it has none, or one that cannot be read: the default holds
            continue
    return found


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The *facts* that are JSON; a function becomes True."""
    return {str(key): True if callable(value) else _value(value) for key, value in facts.items()}


def _value(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return repr(value)
