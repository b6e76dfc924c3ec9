"""One whole session with a provider, each member called in the order and the way of a host."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hermes.memory.schemas import usable_tools
from hermes.memory.seat import Seat
from hermes.testing.conformance.bench import SESSION, Bench

QUESTION = "When does the ferry to Ormsby leave?"
ANSWER = "The ferry to Ormsby leaves at ten, from pier {word}."
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": QUESTION},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call-1", "type": "function", "function": {"name": "timetable", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "call-1", "content": "10:00"},
    {"role": "assistant", "content": "At ten."},
]


@attrs.frozen
class Heard:
    """What a provider did when it was called: what it answered, or what it raised."""

    member: str
    answer: Any = None
    error: Exception | None = None
    wanted: tuple[type, ...] = ()
    """The types that the contract names for the answer; none where it is not used."""
    about: str = ""
    """The tool that was called."""


def run(seat: Seat, bench: Bench, *, word: str = "seven", session: str = SESSION) -> Iterator[Heard]:
    """A started session to its end and the shutdown; *word* is in everything that is told."""
    limits = bench.limits
    answer = ANSWER.format(word=word)

    def ask(
        member: str, *args: Any, wanted: tuple[type, ...] = (), late: bool = False, **named: Any
    ) -> Heard:
        if seat.members.get(member) is None:
            return Heard(member)
        call = seat.deliver if late else seat.ask
        within = limits.session_end if member == "on_session_end" else limits.tool_call
        try:
            return Heard(member, call(member, *args, within=within, **named), wanted=wanted)
        except Exception as exc:  # noqa: BLE001 - it is what is heard
            return Heard(member, error=exc)

    yield ask("system_prompt_block", wanted=(str,))
    yield ask("on_turn_start", 1, QUESTION, session_id=session)
    yield ask("prefetch", QUESTION, session_id=session, wanted=(str,))
    yield ask("recall_status")
    yield ask("sync_turn", QUESTION, answer, late=True, session_id=session, messages=MESSAGES)
    yield ask("queue_prefetch", QUESTION, session_id=session)
    yield from tool_calls(seat, bench, word)
    for action, content, more in (
        ("add", answer, {}),
        ("replace", f"{answer} Daily.", {"old_text": "pier", "previous_content": answer}),
        ("remove", f"{answer} Daily.", {}),
    ):
        told = {"session_id": session, "platform": "cli", **more}
        yield ask("on_memory_write", action, "memory", content, late=True, metadata=told)
    yield ask("on_delegation", QUESTION, answer, late=True, child_session_id=f"{session}-child")
    yield ask("on_pre_compress", copy.deepcopy(MESSAGES), wanted=(str, type(None)))
    yield ask("on_session_end", copy.deepcopy(MESSAGES), late=True)
    for reason, facts in SWITCHES:
        facts = {"parent_session_id": session, "reset": False, **facts, "reason": reason}
        yield ask("on_session_switch", f"{session}-{reason}", late=True, **facts)
    yield ask("prefetch", QUESTION, session_id=f"{session}-later", wanted=(str,))
    yield ask("identity_signature", wanted=(dict,))
    yield ask("get_status_config", {}, wanted=(dict,))
    yield ask("backup_paths", wanted=(list, tuple))
    yield ask("shutdown", late=True)


SWITCHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("new_session", {"reset": True}),
    ("resume", {}),
    ("branch", {}),
    ("compress", {}),
    ("undo", {"rewound": True}),
)
"""Every way in which a conversation goes on in another session."""


def tool_calls(seat: Seat, bench: Bench, word: str) -> Iterator[Heard]:
    """One call of each tool, with arguments that its schema allows; *word* stands for texts."""
    try:
        schemas = seat.ask("get_tool_schemas", within=bench.limits.hook)
    except Exception as exc:  # noqa: BLE001 - it is what is heard
        yield Heard("get_tool_schemas", error=exc)
        return
    for name, schema in usable_tools(schemas)[0].items():
        try:
            given = arguments(schema["parameters"], word)
            answer = seat.ask("handle_tool_call", name, given, within=bench.limits.tool_call)
        except Exception as exc:  # noqa: BLE001 - it is what is heard
            yield Heard("handle_tool_call", error=exc, about=name)
        else:
            yield Heard("handle_tool_call", answer, about=name)


def arguments(schema: Mapping[str, Any], word: str) -> dict[str, Any]:
    """Arguments that the JSON schema of a tool allows: what it requires, or all where it requires nothing."""
    properties = {k: v for k, v in schema.get("properties", {}).items() if isinstance(v, Mapping)}
    wanted = [key for key in schema.get("required", ()) if key in properties] or list(properties)
    return {key: _value(properties[key], word) for key in wanted}


def _value(schema: Mapping[str, Any], word: str) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("default") is not None:
        return json.loads(json.dumps(schema["default"], default=str))
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "array":
        items = schema.get("items")
        return [_value(items if isinstance(items, Mapping) else {}, word)]
    if kind == "object":
        return arguments(schema, word)
    number = schema.get("minimum", schema.get("exclusiveMinimum", 0) or 1)
    return {"integer": number, "number": number, "boolean": False, "null": None}.get(str(kind), word)
