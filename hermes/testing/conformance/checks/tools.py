"""That a model can be offered the tools, and gets JSON for an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.memory.lanes import describe
from hermes.memory.schemas import normalize_tool_schema, usable_tools
from hermes.plugin_host.manifest import FILE
from hermes.testing.conformance.bench import Bench, NotTried
from hermes.testing.conformance.findings import Where
from hermes.testing.conformance.session import tool_calls

_OFFERED = "The host does not offer a tool that a model endpoint would refuse, or that another one has."
_CHOSEN = "A model chooses and fills in a tool by what its schema says."
_ANSWER = "The answer goes to the model as JSON text; what is something else is wrapped and hard to read."


def schemas(bench: Bench) -> None:
    """Every schema can be offered as it is, and says what the tool and its arguments are for."""
    provider = bench.registered.memory_provider
    place = bench.place_of(provider, "get_tool_schemas")
    found = _asked(bench, place)
    tools, refused = usable_tools(found)
    for reason in refused:
        name = reason.split("'")[1] if "'" in reason else ""
        bench.error(
            reason,
            why=_OFFERED,
            mend=_how(reason),
            where=_line(bench, place, name),
        )
    for schema in found if isinstance(found, list | tuple) else ():
        normal = normalize_tool_schema(schema)
        if normal is not None:
            _described(bench, normal, schema, _line(bench, place, normal["name"]))
    declared = bench.job.manifest.get("provides_tools")
    for name in declared if isinstance(declared, list) else ():
        if str(name) not in tools:
            bench.error(
                f"{FILE} names the tool {name}, which is not there",
                why="People and hosts read plugin.yaml to learn what a plugin does without running it.",
                mend="take it out of provides_tools, or offer it",
                where=bench.line_of(bench.file(FILE), re.compile(re.escape(str(name))).search),
            )
    try:
        seat = bench.start()
    except NotTried:
        return  # what the tools are before the start is all that can be said
    later = set(usable_tools(seat.ask("get_tool_schemas", within=bench.limits.hook))[0])
    if later != set(tools):
        bench.warning(
            f"the tools change with the start: {', '.join(sorted(later ^ set(tools)))}",
            why="A host lists tools when the provider is registered, and some list them only then.",
            mend="return the same tools before and after initialize",
            where=place,
        )
    bench.leave(seat)


def results(bench: Bench) -> None:
    """Every tool, called with arguments that its schema allows, answers with JSON text."""
    seat = bench.start()
    provider = seat.provider
    place = bench.place_of(provider, "handle_tool_call")
    for heard in tool_calls(seat, bench, "ferry"):
        if heard.error is not None:
            if bench.is_own_fault(heard.error):
                raised = bench.place_raised(heard.error)
                bench.error(
                    f"{heard.about or heard.member} raises {describe(heard.error)} for what its schema allows",
                    why="The model gets an error that says nothing about what to do otherwise.",
                    mend='return json.dumps({"error": "what is wrong"}) instead of raising',
                    where=raised if raised.file else place,
                )
        elif not isinstance(heard.answer, str):
            bench.error(
                f"{heard.about} answers with {type(heard.answer).__name__}, expected text",
                why=_ANSWER,
                mend="return json.dumps(...), also for one text",
                where=place,
            )
        elif not _is_json(heard.answer):
            bench.error(
                f"{heard.about} answers with text that is no JSON: {heard.answer[:60]!r}",
                why=_ANSWER,
                mend="return json.dumps(...), also for one text",
                where=place,
            )
    bench.leave(seat)


def _asked(bench: Bench, place: Where) -> Any:
    try:
        return bench.seat().ask("get_tool_schemas", within=bench.limits.hook)
    except Exception as exc:
        bench.error(
            f"get_tool_schemas raises {describe(exc)} before the start",
            why="A host asks for the tools when the provider is registered; one that fails there is refused.",
            mend="return the tools without needing initialize",
            where=place,
        )
        raise NotTried("its tools cannot be read") from exc


def _described(bench: Bench, normal: Mapping[str, Any], schema: Any, where: Where) -> None:
    name = normal["name"]
    if not normal["description"].strip():
        bench.warning(
            f"the tool {name} has no description", why=_CHOSEN, mend="say when to use it", where=where
        )
    properties = normal["parameters"]["properties"]
    for key in normal["parameters"].get("required", ()):
        if key not in properties:
            bench.error(
                f"the tool {name} requires {key!r}, which is no property of it",
                why="Strict model endpoints refuse the whole request for it.",
                mend=f"describe {key} under properties, or take it out of required",
                where=where,
            )
    given = schema.get("function", schema).get("parameters") if isinstance(schema, Mapping) else None
    if not isinstance(given, Mapping) or given.get("type") != "object":
        bench.warning(
            f"the parameters of the tool {name} are no object schema",
            why=_CHOSEN,
            mend='say {"type": "object", "properties": {...}}',
            where=where,
        )


def _how(reason: str) -> str:
    if "belongs to the agent" in reason:
        return "give it a name of its own, one that starts with the provider's name"
    if "exists already" in reason:
        return "offer every tool once"
    return "use a name of letters, digits, _ and -, 64 at most, and parameters that are JSON"


def _line(bench: Bench, start: Where, name: str) -> Where:
    if not name or not start.file:
        return start
    lines = bench.lines(Path(start.file))
    found = (n for n, line in enumerate(lines, 1) if f'"{name}"' in line or f"'{name}'" in line)
    return Where(start.file, next(found, start.line))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
