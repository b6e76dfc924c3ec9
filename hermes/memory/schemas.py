"""Tools as providers describe them, brought into the one shape that every model endpoint takes."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

BUILTIN_TOOL = "memory"

CORE_TOOLS = frozenset(
    {
        BUILTIN_TOOL,
        "browser_back",
        "browser_click",
        "browser_navigate",
        "browser_press",
        "browser_scroll",
        "browser_snapshot",
        "browser_type",
        "clarify",
        "cronjob",
        "delegate_task",
        "execute_code",
        "image_generate",
        "patch",
        "process",
        "read_file",
        "search_files",
        "send_message",
        "session_search",
        "skill_manage",
        "skill_view",
        "skills_list",
        "terminal",
        "text_to_speech",
        "todo",
        "vision_analyze",
        "web_extract",
        "web_search",
        "write_file",
    }
)
"""Tool names that belong to agents themselves: a provider's tool of that name is not offered."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_DEEPEST = 32
_SCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "if", "then", "else")
_NULL_IS_A_VALUE = ("default", "const")


def normalize_tool_schema(schema: Any) -> dict[str, Any] | None:
    """*schema* as a bare function schema (``name``, ``description``, ``parameters``), a copy of its own.

    Taken out of ``{"type": "function", "function": …}`` however often it is wrapped; nulls and values of the
    wrong type are left out. None for what cannot be offered: no usable name, no JSON.
    """
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping):
            return None
        if not isinstance(schema.get("function"), Mapping):
            break
        schema = schema["function"]
    name = schema.get("name")
    if not isinstance(name, str) or not _NAME.match(name.strip()):
        return None
    description = schema.get("description")
    found = (schema.get(key) for key in ("parameters", "inputSchema", "input_schema"))
    parameters = next((p for p in found if isinstance(p, Mapping)), {})
    try:
        cleaned = _clean(parameters, _DEEPEST)
        normal = {
            "name": name.strip(),
            "description": description if isinstance(description, str) else "",
            "parameters": {**cleaned, "type": "object", "properties": cleaned.get("properties", {})},
        }
        json.dumps(normal, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    if isinstance(schema.get("strict"), bool):
        normal["strict"] = schema["strict"]
    return normal


def _clean(schema: Mapping[Any, Any], deeper: int) -> dict[str, Any]:
    """*schema* without the nulls and the ``required`` that strict endpoints refuse, all the way down."""
    if deeper == 0:
        raise ValueError("nested too deeply")
    cleaned: dict[str, Any] = {}
    for key, value in schema.items():
        if not isinstance(key, str) or (value is None and key not in _NULL_IS_A_VALUE):
            continue
        if key == "required":
            if isinstance(value, list | tuple):
                cleaned[key] = [item for item in value if isinstance(item, str)]
        elif key in _SCHEMA_MAPS:
            if isinstance(value, Mapping):
                cleaned[key] = {k: _clean(v, deeper - 1) for k, v in value.items() if isinstance(v, Mapping)}
        elif key in _SCHEMA_LISTS:
            if isinstance(value, list | tuple):
                cleaned[key] = [_clean(v, deeper - 1) for v in value if isinstance(v, Mapping)]
        elif key in _SCHEMAS and isinstance(value, Mapping):
            cleaned[key] = _clean(value, deeper - 1)
        else:
            cleaned[key] = value
    return cleaned


def usable_tools(
    schemas: Any, *, taken: Collection[str] = (), core: Collection[str] = CORE_TOOLS
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The tools of *schemas* that can be offered, by name, and one sentence for each that cannot.

    *taken* are names that others have, *core* those that no provider may have.
    """
    tools: dict[str, dict[str, Any]] = {}
    refused: list[str] = []
    if not isinstance(schemas, list | tuple):
        return tools, ([f"its tools are {type(schemas).__name__}, expected a list"] if schemas else [])
    for place, schema in enumerate(schemas, 1):
        normal = normalize_tool_schema(schema)
        if normal is None:
            refused.append(f"tool {place} has no usable name or is not JSON")
        elif normal["name"] in core:
            refused.append(f"tool {normal['name']!r} belongs to the agent itself")
        elif normal["name"] in tools or normal["name"] in taken:
            refused.append(f"tool {normal['name']!r} exists already")
        else:
            tools[normal["name"]] = normal
    return tools, refused


class DisabledTools:
    """What ``tools.disabled`` takes away.

    ``memory``: every memory tool. ``builtin``: the built-in one alone. ``provider``, or the name of the
    provider: the provider's tools alone. Any other word: the tool of that name.
    """

    def __init__(self, words: Collection[str]) -> None:
        self._words = {word.strip().lower() for word in words if isinstance(word, str)}

    def refuses(self, tool: str, provider: str, *, external: bool) -> bool:
        """True if *tool* of *provider* is neither listed nor run."""
        group = {"memory", "provider", provider.lower()} if external else {"memory", "builtin", "built-in"}
        return bool(self._words & group) or tool.lower() in self._words


def memory_provider_tools_enabled(
    enabled_toolsets: Collection[str] | None = None, disabled_toolsets: Collection[str] | None = None
) -> bool:
    """True if an agent with these toolsets may have the tools of a memory provider; None filters nothing."""
    if set(disabled_toolsets or ()) & {"memory", "provider", "memory_provider"}:
        return False
    return enabled_toolsets is None or bool(set(enabled_toolsets) & {"memory", "provider", "all", "*"})
