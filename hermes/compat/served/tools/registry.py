"""What a tool answers, and the tools that the plugin registered itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.compat import current
from hermes.plugin_host.context import RegistrationContext


def tool_error(message: Any, **extra: Any) -> str:
    """The JSON text of a failure: ``{"error": message}`` and what else is to be said."""
    return json.dumps({"error": str(message), **extra}, ensure_ascii=False, default=str)


def tool_result(data: Mapping[str, Any] | None = None, **fields: Any) -> str:
    """The JSON text of a success: *data*, or *fields*."""
    return json.dumps(fields if data is None else data, ensure_ascii=False, default=str)


class ToolRegistry:
    """The tools of the plugin that runs in this process."""

    def register(self, name: str, *args: Any, **facts: Any) -> None:
        """Keep a tool, as ``ctx.register_tool`` does."""
        self._context().register_tool(name, *args, **facts)

    def dispatch(self, name: str, args: Mapping[str, Any] | None = None, **kwargs: Any) -> str:
        """Run the tool; the answer is JSON text, also for a name that is not known."""
        return self._context().dispatch_tool(name, args, **kwargs)

    def get_all_tool_names(self) -> list[str]:
        """The names, sorted."""
        return sorted(current.serving().registered.tools)

    def get_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of the tool, or None."""
        schema = current.serving().registered.tools.get(name, {}).get("schema")
        return dict(schema) if isinstance(schema, Mapping) else None

    def _context(self) -> RegistrationContext:
        serving = current.serving()
        context = RegistrationContext("", serving.host)
        context.registered = serving.registered
        return context


registry = ToolRegistry()
