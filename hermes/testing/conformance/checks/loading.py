"""That a plugin loads and what it registers can be a provider."""

from __future__ import annotations

import json
from pathlib import Path

from hermes.memory.provider import BUILTIN, MemoryProvider
from hermes.testing.conformance.bench import Bench

_NEEDED = ("name", "is_available", "initialize", "get_tool_schemas")
_REGISTERED = "register(ctx) is where a host takes the provider from."


def loads(bench: Bench) -> None:
    """One provider with a usable name and the four members that every provider has; writes down its form."""
    provider = bench.registered.memory_provider
    if bench.registered.problem:
        bench.error(
            bench.registered.problem, why=_REGISTERED, mend="let register(ctx) return without an error"
        )
    for member in _NEEDED:
        if not hasattr(provider, member):
            bench.error(
                f"it has no {member}",
                why="A host cannot use a provider without it.",
                mend=f"define {member}; MemoryProvider says how",
            )
    name = getattr(provider, "name", None)
    if not isinstance(name, str) or not name.strip():
        bench.error(
            f"its name is {name!r}",
            why="Status, logs and the journal call a provider by its name.",
            mend="let name be a text",
            where=bench.place_of(provider, "name"),
        )
    elif name == BUILTIN:
        bench.error(
            f"its name is {BUILTIN!r}, which is reserved",
            why="That name is the built-in memory's; a host would take the provider for it.",
            mend="give it a name of its own",
            where=bench.place_of(provider, "name"),
        )
    elif name != bench.job.spec["name"]:
        bench.warning(
            f"its name is {name!r}, and it is chosen as {bench.job.spec['name']!r}",
            why="memory.provider takes the name of the folder or the entry point; two names confuse people.",
            mend="use one name for both",
            where=bench.place_of(provider, "name"),
        )
    if not isinstance(provider, MemoryProvider):
        bench.warning(
            f"{type(provider).__name__} is no MemoryProvider",
            why="Members that it lacks have no default: what a later host calls is not there.",
            mend="derive it from hermes.memory.provider.MemoryProvider",
        )
    bench.notes = {
        "schema": _schema(bench),
        "keeps": bench.seat().implements("save_config"),
        "root": bench.job.root,
        "folder": str(Path(bench.place_of(provider, "initialize").file or ".").parent),
    }


def _schema(bench: Bench) -> object:
    """The form as JSON; None where it cannot be had, which is for another check to say."""
    try:
        form = bench.seat().ask("get_config_schema", within=bench.limits.hook)
        return json.loads(json.dumps(form))
    except Exception:  # noqa: BLE001 - the check config-schema tells what it raises
        return None
