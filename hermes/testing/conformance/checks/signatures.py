"""That every member takes what the host gives it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from hermes.memory.signatures import CONVENTIONS
from hermes.testing.conformance.bench import Bench

_OTHERS: dict[str, tuple[str, ...]] = {
    "is_available": (),
    "unavailable_reason": (),
    "get_tool_schemas": (),
    "system_prompt_block": (),
    "recall_status": (),
    "identity_signature": (),
    "get_config_schema": (),
    "save_config": ("values", "hermes_home"),
    "post_setup": ("hermes_home", "config"),
    "get_status_config": ("provider_config",),
    "backup_paths": (),
    "export_records": (),
    "shutdown": (),
}
"""Members that are called with just these, by place."""
_SAFE_TO_IGNORE = frozenset(
    {"messages", "turn_author", "rewound", "reason", "require_checkpoint", "metadata"}
)


def callable_by_the_host(bench: Bench) -> None:
    """Every member that is there can be called with what the host gives; nothing that matters is lost."""
    provider = bench.registered.memory_provider
    members = bench.seat().members
    for name in [*CONVENTIONS, *_OTHERS]:
        try:
            member = members.get(name)
        except Exception:  # noqa: BLE001 - it is a property, and then no member that a host calls
            member = None
        if member is None:
            continue
        convention = CONVENTIONS.get(name)
        positional = convention.positional if convention else _OTHERS[name]
        keywords = convention.keywords if convention else ()
        args, named = members.bind(name, member, positional, {key: key for key in keywords})
        if problem := _refuses(member, args, named):
            bench.error(
                f"{name}{_signature(member)} cannot be called: {problem}",
                why="The host would get a TypeError in the place of every answer.",
                mend=f"take {', '.join((*positional, *(f'{key}=' for key in keywords)))}, or **kwargs",
                where=bench.place_of(provider, name),
            )
            continue
        lost = [
            key for key in keywords if key not in named and key not in args and key not in _SAFE_TO_IGNORE
        ]
        if lost:
            bench.warning(
                f"{name}{_signature(member)} does not take {', '.join(lost)}",
                why="Without it a provider cannot tell which session a call belongs to.",
                mend=f"add {', '.join(f'{key}=...' for key in lost)} as a keyword",
                where=bench.place_of(provider, name),
            )


def _refuses(member: Callable[..., Any], args: Any, named: Any) -> str:
    """Why *member* cannot be called so; empty if it can, or if it does not say what it takes."""
    try:
        inspect.signature(member).bind(*args, **named)
    except TypeError as exc:
        return str(exc)
    except ValueError:
        return ""
    return ""


def _signature(member: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(member).replace(return_annotation=inspect.Signature.empty))
    except (TypeError, ValueError):
        return "(...)"
