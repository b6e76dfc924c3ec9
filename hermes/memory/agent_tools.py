"""Putting the tools of a memory provider into an agent's own list."""

from __future__ import annotations

from typing import Any

from hermes.memory.schemas import memory_provider_tools_enabled


def inject_memory_provider_tools(agent: Any) -> int:
    """Add the tools of the agent's memory provider to ``agent.tools``; how many were added.

    Read from the agent: ``memory_manager`` (or ``_memory_manager``), ``tools`` (a list of wrapped function
    schemas), ``valid_tool_names`` (a set), ``enabled_toolsets`` and ``disabled_toolsets``. A name that the
    agent has already stays the agent's. Adding twice adds nothing.
    """
    manager = getattr(agent, "memory_manager", None) or getattr(agent, "_memory_manager", None)
    if manager is None or not memory_provider_tools_enabled(
        getattr(agent, "enabled_toolsets", None), getattr(agent, "disabled_toolsets", None)
    ):
        return 0
    tools = getattr(agent, "tools", None)
    if tools is None:
        tools = agent.tools = []
    names = getattr(agent, "valid_tool_names", None)
    if names is None:
        names = agent.valid_tool_names = set()
    taken = set(names) | {_name(tool) for tool in tools}
    added = 0
    for schema in manager.get_all_tool_schemas():
        if schema["name"] not in taken:
            tools.append({"type": "function", "function": schema})
            names.add(schema["name"])
            added += 1
    return added


def _name(tool: Any) -> str:
    inner = tool.get("function", tool) if isinstance(tool, dict) else {}
    return str(inner.get("name", "")) if isinstance(inner, dict) else ""
