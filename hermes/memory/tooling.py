"""The tools of a manager: what is offered to the model, and calls whose answer is always JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hermes.errors import HermesError
from hermes.memory.lanes import describe
from hermes.memory.registry import Registry
from hermes.memory.schemas import BUILTIN_TOOL
from hermes.memory.turns import detached, scrubbed


class Tools:
    """Lists and runs the tools of all providers. *mask* takes secrets out of what goes to outside ones."""

    def __init__(self, registry: Registry, mask: Callable[[Any], Any]) -> None:
        self._registry = registry
        self._mask = mask

    def schemas(self) -> list[dict[str, Any]]:
        """What is offered to the model; copies."""
        return [detached(schema) for _, schema in self._registry.tools()]

    def names(self) -> set[str]:
        """The names of what is offered."""
        return {schema["name"] for _, schema in self._registry.tools()}

    def run(self, name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """The answer of the tool *name*, as JSON text, and its arguments if it was the built-in one."""
        seat = self._registry.owner_of(name)
        if seat is None:
            return _error(f"unknown tool: {name}"), None
        if self._registry.disabled.refuses(name, seat.name, external=seat.external):
            return _error(f"the tool {name} is disabled"), None
        if not seat.usable:
            return _error(f"memory provider {seat.name} cannot be used: {seat.reason or seat.state}"), None
        try:
            given, facts = _arguments(args), detached(dict(kwargs))
            if seat.external:
                given, facts = self._mask((scrubbed(given), facts))
            result = seat.ask("handle_tool_call", name, given, within=seat.limits.tool_call, **facts)
            text = _as_json(result)
        except Exception as exc:  # noqa: BLE001 - the model gets the error as the tool's answer
            self._registry.note(seat, name, exc)
            return _error(f"{name} failed: {exc if isinstance(exc, HermesError) else describe(exc)}"), None
        return text, given if name == BUILTIN_TOOL and not seat.external else None


def _arguments(args: Any) -> dict[str, Any]:
    """The arguments of a tool call as a dict of its own. Raises HermesError for what is none."""
    if isinstance(args, str) and args.strip():
        try:
            args = json.loads(args)
        except ValueError as exc:
            raise HermesError(f"the arguments are not JSON: {exc}") from exc
    if args is None or args == "":
        return {}
    if not isinstance(args, Mapping):
        raise HermesError(f"the arguments are {type(args).__name__}, expected an object")
    copied: dict[str, Any] = detached(dict(args))
    return copied


def _as_json(result: Any) -> str:
    """*result* as JSON text: as it is, or wrapped where it is something else."""
    if isinstance(result, str):
        try:
            json.loads(result)
        except ValueError:
            return json.dumps({"result": result}, ensure_ascii=False)
        return result
    wrapped = result if isinstance(result, dict | list) else {"result": result}
    return json.dumps(wrapped, ensure_ascii=False, default=str)


def _error(message: str) -> str:
    return json.dumps({"error": message}, ensure_ascii=False)
