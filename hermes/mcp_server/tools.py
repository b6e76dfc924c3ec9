"""What a client can do with a memory: six tools of ours, and those of the provider that were asked for.

Every call goes through the memory manager, and so through its locks, limits, approval and journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from hermes.errors import (
    EntryNotFound,
    EntryRefused,
    HermesError,
    NotFound,
    ProviderUnavailable,
    UsageError,
)
from hermes.memory.builtin import BuiltinMemoryProvider, Entry, Target
from hermes.memory.builtin.addressing import find
from hermes.memory.fences import build_memory_context_block
from hermes.memory.manager import MemoryManager
from hermes.memory.schemas import BUILTIN_TOOL
from hermes.model.tools import tool_name

Result = dict[str, Any]

_TARGET = {
    "type": "string",
    "enum": ["memory", "user"],
    "description": "user: who the person is and what they like; memory: everything else.",
}
_ENTRY = {"type": "string", "description": "The id of an entry, or any part of its text that no other has."}
_LISTED = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "target": {"type": "string"}, "text": {"type": "string"}},
    "required": ["id", "target", "text"],
}


@attrs.frozen
class Tool:
    """A tool as a client is shown it, and what runs it."""

    name: str
    title: str
    description: str
    input: Mapping[str, Any]
    run: Callable[[dict[str, Any]], Result]
    output: Mapping[str, Any] | None = None
    reads: bool = False
    """It changes nothing."""
    destroys: bool = False
    """It takes something away."""
    again: bool = False
    """Called twice with the same arguments it does no more than once."""
    outside: bool = True
    """It may reach beyond this machine."""


class Refused(HermesError):
    """A call that changed nothing; *answer* says why, and what there is to choose from."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(
            str(answer.get("error") or answer.get("message")), next_step=str(answer.get("next_step") or "")
        )
        self.answer = answer


class MemoryTools:
    """The tools over *memory*; with *read_only* those that change nothing. *extra* names tools of the provider.

    Raises NotFound for one that the provider does not have, UsageError where *read_only* excludes them.
    """

    def __init__(
        self,
        memory: MemoryManager,
        builtin: BuiltinMemoryProvider,
        *,
        read_only: bool = False,
        extra: Collection[str] = (),
    ) -> None:
        self._memory = memory
        self._builtin = builtin
        if read_only and extra:
            raise UsageError("--read-only and --tool exclude each other", next_step="leave one out")
        own = [self._recall(), self._search(), self._list()]
        if not read_only:
            own += [self._remember(), self._update(), self._forget()]
        self.all = {tool.name: tool for tool in own}
        if taken := self.all.keys() & set(extra):
            raise UsageError(f"{', '.join(sorted(taken))}: a tool of that name is offered already")
        self.all |= {tool.name: tool for tool in self._of_provider(extra)}

    def call(self, name: str, arguments: Mapping[str, Any]) -> Result:
        """Run the tool *name*. Raises HermesError with what is wrong, for the model to mend."""
        tool = self.all.get(name)
        if tool is None:
            raise NotFound(f"there is no tool {name!r}", next_step=f"one of {', '.join(self.all)}")
        return tool.run(_checked(tool, arguments))

    # -- reading -----------------------------------------------------------------------------------------

    def _recall(self) -> Tool:
        def run(given: dict[str, Any]) -> Result:
            return {"context": build_memory_context_block(self._memory.prefetch_all(given["query"]))}

        return Tool(
            "recall",
            "Recall",
            "What is remembered that fits a question or a topic, as background. Ask before you answer something "
            "that earlier conversations may have settled.",
            _object({"query": {"type": "string", "description": "A question, or words."}}, "query"),
            run,
            _object({"context": {"type": "string"}}, "context"),
            reads=True,
            again=True,
            outside=False,
        )

    def _search(self) -> Tool:
        def run(given: dict[str, Any]) -> Result:
            limit = given.get("limit", 10)
            words = given["query"].casefold().split()
            entries = [
                {"provider": "builtin", **_as_dict(entry)}
                for entry in self.entries()
                if all(word in entry.text.casefold() for word in words)
            ]
            told: Result = {}
            try:
                stored = self._memory.search_records(given["query"], limit=limit) or []
            except ProviderUnavailable as exc:  # the entries are found all the same
                stored, told = [], {"warning": f"{exc.message}: its items are missing here"}
            name = self._memory.external_name
            found = [*entries[:limit], *({"provider": name, **record} for record in stored)]
            return {"results": json.loads(json.dumps(found, default=str)), **told}

        return Tool(
            "search",
            "Search",
            "Single items that hold some words, best first, with who said them and when.",
            _object(
                {
                    "query": {"type": "string", "description": "Words."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many."},
                },
                "query",
            ),
            run,
            _object(
                {
                    "results": {"type": "array", "items": {"type": "object"}},
                    "warning": {"type": "string", "description": "What is missing."},
                },
                "results",
            ),
            reads=True,
            again=True,
            outside=False,
        )

    def _list(self) -> Tool:
        def run(given: dict[str, Any]) -> Result:
            wanted = given.get("target")
            return {
                "entries": [_as_dict(entry) for entry in self.entries() if wanted in (None, entry.target)]
            }

        return Tool(
            "list",
            "List entries",
            "The entries that are kept for every conversation, each with its id.",
            _object({"target": _TARGET}),
            run,
            _object({"entries": {"type": "array", "items": _LISTED}}, "entries"),
            reads=True,
            again=True,
            outside=False,
        )

    # -- writing -----------------------------------------------------------------------------------------

    def _remember(self) -> Tool:
        return Tool(
            "remember",
            "Remember",
            "Keep one short fact for every later conversation. It is on disk when this returns, unless the "
            "person wants to approve writes: then it says so.",
            _object({"text": {"type": "string"}, "target": _TARGET}, "text"),
            lambda given: self._write("add", given.get("target", "memory"), content=given["text"]),
            _WRITTEN,
            outside=False,
        )

    def _update(self) -> Tool:
        def run(given: dict[str, Any]) -> Result:
            return self._write(
                "replace", self._target_of(given), old_text=given["entry"], content=given["text"]
            )

        return Tool(
            "update",
            "Update an entry",
            "Put a new text in the place of a whole entry.",
            _object({"entry": _ENTRY, "text": {"type": "string"}, "target": _TARGET}, "entry", "text"),
            run,
            _WRITTEN,
            destroys=True,
            again=True,
            outside=False,
        )

    def _forget(self) -> Tool:
        return Tool(
            "forget",
            "Forget an entry",
            "Remove an entry. The person can take that back with hermes memory undo.",
            _object({"entry": _ENTRY, "target": _TARGET}, "entry"),
            lambda given: self._write("remove", self._target_of(given), old_text=given["entry"]),
            _WRITTEN,
            destroys=True,
            again=True,
            outside=False,
        )

    def _write(self, action: str, target: str, **arguments: str) -> Result:
        self._builtin.on_turn_start(0, "")  # what was refused to one call is not held against the next
        answer = json.loads(
            self._memory.handle_tool_call(
                BUILTIN_TOOL, {"action": action, "target": target, **arguments}, write_origin="mcp"
            )
        )
        if "error" in answer or answer.get("success") is False:
            raise Refused(answer)
        staged = bool(answer.get("staged"))
        told = ("message", "warning", "usage")
        return {
            "stored": not staged,
            "waits_for_approval": staged,
            **{name: str(answer[name]) for name in told if name in answer},
        }

    def entries(self) -> list[Entry]:
        """The entries that a model may see, of the halves that are on. Raises StoreUnavailable."""
        memory = self._builtin.memory
        return [
            entry for half in memory.enabled.targets for entry in memory.entries(half) if not entry.blocked
        ]

    def _target_of(self, given: Mapping[str, Any]) -> str:
        """The half that the entry is in: the one that was named, else the one that has it."""
        if "target" in given:
            return str(given["target"])
        memory = self._builtin.memory
        having = [half for half in memory.enabled.targets if self._has(half, given["entry"])]
        if len(having) > 1:
            raise EntryRefused(
                "both halves hold it", kind="ambiguous", next_step="name the target, or give more of the text"
            )
        return (having or memory.enabled.targets or ("memory",))[0]

    def _has(self, half: Target, wanted: str) -> bool:
        try:
            find([entry.text for entry in self._builtin.memory.entries(half)], wanted, half)
        except EntryNotFound:
            return False
        except EntryRefused:  # several of this half
            return True
        return True

    # -- the provider's own ------------------------------------------------------------------------------

    def _of_provider(self, names: Collection[str]) -> list[Tool]:
        offered = {tool_name(schema): schema for schema in self._memory.get_all_tool_schemas()}
        offered.pop(BUILTIN_TOOL, None)
        for name in names:
            if name not in offered:
                known = ", ".join(sorted(offered)) or "none"
                raise NotFound(f"the provider has no tool {name!r}", next_step=f"it has: {known}")
        return [self._passed_on(name, offered[name]) for name in names]

    def _passed_on(self, name: str, schema: Mapping[str, Any]) -> Tool:
        bare = schema.get("function", schema)

        def run(given: dict[str, Any]) -> Result:
            answer = json.loads(self._memory.handle_tool_call(name, given))
            if isinstance(answer, dict) and answer.get("error"):
                raise Refused(answer)
            return answer if isinstance(answer, dict) else {"result": answer}

        parameters = bare.get("parameters") or {"type": "object", "properties": {}}
        return Tool(name, name, str(bare.get("description") or ""), parameters, run, destroys=True)


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


_WRITTEN = _object(
    {
        "stored": {"type": "boolean"},
        "waits_for_approval": {"type": "boolean"},
        "message": {"type": "string"},
        "usage": {"type": "string", "description": "How full that half is."},
        "warning": {"type": "string"},
    },
    "stored",
    "waits_for_approval",
)


def _as_dict(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "target": entry.target, "text": entry.text}


_KINDS: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int}


def _checked(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """*arguments*, checked against what a tool of ours takes; those of others check for themselves."""
    properties = tool.input.get("properties", {})
    if tool.outside:
        return dict(arguments)
    for name in tool.input.get("required", ()):
        if not arguments.get(name):
            raise UsageError(
                f"{tool.name} needs {name!r}", next_step=str(properties[name].get("description", ""))
            )
    for name, value in arguments.items():
        if name not in properties:
            raise UsageError(f"{tool.name} takes no {name!r}", next_step=f"it takes {', '.join(properties)}")
        wanted = properties[name]
        if not isinstance(value, _KINDS[wanted["type"]]) or isinstance(value, bool):
            raise UsageError(f"{name!r} must be of type {wanted['type']}")
        if "enum" in wanted and value not in wanted["enum"]:
            raise UsageError(f"{name!r} must be one of {', '.join(wanted['enum'])}")
        if not wanted.get("minimum", value) <= value <= wanted.get("maximum", value):
            raise UsageError(f"{name!r} must lie between {wanted['minimum']} and {wanted['maximum']}")
    return dict(arguments)


def problem(exc: HermesError) -> Result:
    """An error as a client is told of it, with what there is to choose from."""
    more = exc.answer if isinstance(exc, Refused) else {}
    kept = {name: more[name] for name in ("entries", "current", "usage") if name in more}
    return {"error": exc.message, "next_step": exc.next_step, **kept}
