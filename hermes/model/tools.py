"""Tools as a model is offered them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tool_name(schema: Mapping[str, Any]) -> str:
    """The name in *schema*, bare or wrapped."""
    return str(schema.get("name") or schema.get("function", {}).get("name") or "")


def as_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    """*schema* in the wrapping that the endpoint expects."""
    return dict(schema) if "function" in schema else {"type": "function", "function": dict(schema)}
