"""The ``memory`` tool as the model sees it: its schema, and its arguments made sense of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from hermes.errors import EntryRefused
from hermes.memory.builtin.content import clean
from hermes.memory.builtin.values import ACTIONS, TARGETS, Action, Enabled, Operation, Target

TOOL = "memory"
READ = "read"
MAX_OPERATIONS = 50

_DESCRIPTION = """\
Notes that last: they are shown to you at the start of every later session. Save what will still matter \
then, as soon as you learn it: who the user is, what they prefer, corrections they made, facts about their \
projects and machines, decisions and lessons. One fact per entry, short, stated as a fact, not as an order. \
Do not save what is easy to look up, what only this task needs, or secrets.

Actions: add (content), replace (old_text, content), remove (old_text), read (what is saved now; the notes \
in your prompt are those of the start of this session). old_text is any part of the entry that no other has. \
replace puts content in place of the WHOLE entry. operations does several writes at once, all or none; \
only its final result must fit the limit, so a full memory is tidied by removing and adding in one batch. \
A successful write is final: do not repeat or check it."""

_TARGET_HELP = {
    "memory": "memory: your notes on projects, machines, tools, lessons",
    "user": "user: the user's name, role, preferences, habits",
}


@attrs.frozen
class Request:
    """What a call asks for: to read, or to carry out *operations*."""

    target: Target
    operations: tuple[Operation, ...] = ()

    @property
    def reads(self) -> bool:
        """Whether nothing is to be written."""
        return not self.operations


def schema(targets: tuple[Target, ...]) -> dict[str, Any]:
    """The tool as an OpenAI function schema, for the halves that are on."""
    write = {
        "action": {"type": "string", "enum": list(ACTIONS)},
        "content": {"type": "string", "description": "The entry, for add and replace."},
        "old_text": {"type": "string", "description": "Part of the entry meant, for replace and remove."},
    }
    return {
        "name": TOOL,
        "description": _DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {
                "target": {
                    "type": "string",
                    "enum": list(targets),
                    "description": "; ".join(_TARGET_HELP[target] for target in targets),
                },
                **write,
                "action": {"type": "string", "enum": [*ACTIONS, READ]},
                "operations": {
                    "type": "array",
                    "description": "Several writes to target, instead of action; all or none.",
                    "items": {"type": "object", "properties": write, "required": ["action"]},
                },
            },
            "required": ["target"],
        },
    }


def parse(args: Any, enabled: Enabled) -> Request:
    """The request in *args*, read leniently, nothing guessed. Raises EntryRefused, naming the values."""
    args = _decoded(args)
    if not isinstance(args, Mapping):
        raise _wrong(f"the arguments must be an object, not {_kind(args)}")
    target = parse_target(args.get("target"), enabled)
    given = args.get("operations")
    if given is None or given in ("", []):
        action = _word(args.get("action"))
        return Request(target) if action == READ else Request(target, (_operation(args),))
    operations = _decoded(given)
    if not isinstance(operations, list):
        raise _wrong(f"operations must be a list of objects, not {_kind(operations)}")
    if len(operations) > MAX_OPERATIONS:
        raise _wrong(f"{len(operations)} operations; {MAX_OPERATIONS} at most in one call")
    return Request(target, tuple(_numbered(number, item) for number, item in enumerate(operations, 1)))


def parse_target(value: Any, enabled: Enabled) -> Target:
    """The half that is meant; where none is named, the first that is on. Raises EntryRefused."""
    word = _word(value)
    if not word and enabled.targets:
        return enabled.targets[0]
    if word in enabled.targets:
        return word
    if word in TARGETS:
        raise EntryRefused(f"target {word!r} is off", kind="off", next_step=_choices(enabled.targets))
    raise _wrong(f"target {_short(value)} is unknown", _choices(enabled.targets))


def _numbered(number: int, item: Any) -> Operation:
    try:
        item = _decoded(item)
        if not isinstance(item, Mapping):
            raise _wrong(f"must be an object, not {_kind(item)}")
        return _operation(item)
    except EntryRefused as exc:
        exc.message = f"operation {number}: {exc.message}"
        raise


def _operation(fields: Mapping[str, Any]) -> Operation:
    word = _word(fields.get("action"))
    if word not in ACTIONS:
        what = "action is missing" if not word else f"action {_short(fields.get('action'))} is unknown"
        raise _wrong(what, _choices([*ACTIONS, READ]))
    action: Action = word
    content, old_text = clean(_text(fields, "content")), clean(_text(fields, "old_text"))
    if action == "remove":
        old_text, content = old_text or content, ""  # some clients never send old_text
    if action != "remove" and not content:
        raise _wrong(f"{action} needs content", "give the whole entry as content")
    if action != "add" and not old_text:
        raise _wrong(
            f"{action} needs old_text", "call again with old_text set to part of one of these entries"
        )
    return Operation(action, content, "" if action == "add" else old_text)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(f"{name} must be text, not {_kind(value)}")
    return value


def _decoded(value: Any) -> Any:
    """Some clients send nested values as JSON text."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _word(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else "" if value is None else _short(value)


def _wrong(what: str, next_step: str = "correct the arguments and call once more") -> EntryRefused:
    return EntryRefused(what, kind="arguments", next_step=next_step)


def _choices(values: Any) -> str:
    return f"one of: {', '.join(values) or 'none'}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:59] + "…"
