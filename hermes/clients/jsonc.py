"""Changing one value in a JSON file of somebody else: comments, order and all other bytes stay.

The files may have ``//`` and ``/* */`` comments and trailing commas, as VS Code writes them. A path names the
members on the way: keys of objects, places in lists.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

import attrs

Step = str | int

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"[^\s,\]}/]+")
_LINE_END = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*)*(?=\n)")
_CLOSED_BY = {"{": "}", "[": "]"}


class NotJson(ValueError):
    """The text is no JSON, comments allowed for; the message says where."""


@attrs.frozen
class _Member:
    key: Step
    start: int
    """Where the key begins; in a list, the value."""
    value: int
    end: int
    """Behind the value."""
    holds: Any


@attrs.frozen
class _Container:
    """An object or a list in the text."""

    start: int
    """Where the bracket opens."""
    end: int
    """Where it closes."""
    members: tuple[_Member, ...]
    trailing: int
    """Where a comma stands behind the last member; -1 if there is none."""
    listed: bool

    def get(self, key: Step) -> _Member | None:
        return next((member for member in self.members if member.key == key), None)


def loads(text: str) -> Any:
    """The value of *text*. Raises NotJson."""
    try:
        value, at = _value(text, _skip(text, 0))
    except RecursionError:
        raise NotJson("it is nested too deep") from None
    if _skip(text, at) != len(text):
        raise NotJson(f"something stands behind the end, at character {at}")
    return value


def put(text: str, path: Sequence[Step], value: Any) -> str:
    """*text* with *value* at *path*, objects on the way made where they are missing.

    The place behind the last of a list adds to it. Raises NotJson, also where something on the way is neither
    an object nor a list.
    """
    if not text.strip():
        text = "{}\n"
    wanted = loads(text)
    if not isinstance(wanted, dict):
        raise NotJson("the file holds no object")
    changed = _put(text, _container(text, _skip(text, 0)), list(path), value, 1)
    _put_in(wanted, path, value)
    return _checked(changed, wanted)


def remove(text: str, path: Sequence[Step]) -> str:
    """*text* without what stands at *path*; as it is where nothing does. Raises NotJson."""
    wanted, at = loads(text), _skip(text, 0)
    inside = wanted
    for key in path[:-1]:
        member = _container(text, at).get(key) if text[at : at + 1] in _CLOSED_BY else None
        if member is None:
            return text
        inside, at = inside[key], member.value
    if text[at : at + 1] not in _CLOSED_BY:
        return text
    found = _container(text, at)
    if found.get(path[-1]) is None:
        return text
    del inside[path[-1]]
    return _checked(_without(text, found, path[-1]), wanted)


def _put_in(document: Any, path: Sequence[Step], value: Any) -> None:
    for key in path[:-1]:
        document = document.setdefault(key, {}) if isinstance(document, dict) else document[key]
    if isinstance(document, list) and path[-1] == len(document):
        document.append(copy.deepcopy(value))
    else:
        document[path[-1]] = copy.deepcopy(value)


def _checked(text: str, wanted: Any) -> str:
    if loads(text) != wanted:
        raise NotJson("it cannot be changed without touching something else")
    return text


def _put(text: str, found: _Container, path: list[Step], value: Any, depth: int) -> str:
    key, *rest = path
    member = found.get(key)
    if member is None:
        if found.listed is isinstance(key, str) or (found.listed and key != len(found.members)):
            raise NotJson(f"there is no place {key!r}")
        for name in reversed(rest):
            value = {name: value}
        return _inserted(text, found, key, value, depth)
    if rest:
        if text[member.value] not in _CLOSED_BY:
            raise NotJson(f"{key!r} is no object")
        return _put(text, _container(text, member.value), rest, value, depth + 1)
    one_line = "\n" not in text[found.start : found.end]
    return text[: member.value] + _dumped(value, text, depth, one_line=one_line) + text[member.end :]


def _inserted(text: str, found: _Container, key: Step, value: Any, depth: int) -> str:
    unit = _indent(text)
    one_line = bool(found.members) and "\n" not in text[found.start : found.end]
    label = f"{json.dumps(key)}: " if isinstance(key, str) else ""
    new = label + _dumped(value, text, depth, one_line=one_line)
    if not found.members:
        inside = text[found.start + 1 : found.end].rstrip()
        before, after = text[: found.start + 1], text[found.end :]
        return f"{before}{inside}\n{unit * depth}{new}\n{unit * (depth - 1)}{after}"
    last = found.members[-1]
    at = found.trailing + 1 if found.trailing >= 0 else last.end
    comma, own = ("", ",") if found.trailing >= 0 else (",", "")  # who ends with a comma goes on so
    if one_line:  # an object in one line stays in one
        return f"{text[:at]}{comma} {new}{own}{text[at:]}"
    # behind a comment that stands on the line of the last member
    line_end = _LINE_END.match(text, at)
    behind = line_end.end() if line_end else at
    return f"{text[:at]}{comma}{text[at:behind]}\n{unit * depth}{new}{own}{text[behind:]}"


def _without(text: str, found: _Container, key: Step) -> str:
    number = next(n for n, member in enumerate(found.members) if member.key == key)
    member = found.members[number]
    start, end = member.start, member.end
    after = _skip(text, end)
    if text[after : after + 1] == ",":
        end = after + 1
    elif number:  # the last one: the comma in front of it goes
        comma = _skip(text, found.members[number - 1].end)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start)
    if line >= 0 and not text[line + 1 : start].strip() and re.match(r"[ \t]*(?:\n|\Z)", text[end:]):
        start = line  # the line was its own
    elif text[start - 1 : start] == " " and text[end : end + 1] in (" ", "}", "]", ","):
        start -= 1
    return text[:start] + text[end:]


def _dumped(value: Any, text: str, depth: int, *, one_line: bool) -> str:
    if one_line:
        return json.dumps(value, ensure_ascii=False)
    unit = _indent(text)
    indent: Any = unit if unit.strip(" ") else len(unit)
    return json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", f"\n{unit * depth}")


def _indent(text: str) -> str:
    """What one level of *text* is indented by."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _container(text: str, at: int) -> _Container:
    """The object or list whose bracket opens at *at*. Raises NotJson."""
    opening = text[at : at + 1]
    if opening not in _CLOSED_BY or not opening:
        raise NotJson(f"expected an object at character {at}")
    closing, listed = _CLOSED_BY[opening], opening == "["
    members: list[_Member] = []
    start, trailing = at, -1
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        key, value = (len(members), at) if listed else _key(text, at)
        holds, end = _value(text, value)
        members.append(_Member(key, at, value, end, holds))
        trailing, at = -1, _skip(text, end)
        if text[at : at + 1] == ",":
            trailing, at = at, _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise NotJson(f"expected a comma at character {at}")
    return _Container(start, at, tuple(members), trailing, listed)


def _key(text: str, at: int) -> tuple[str, int]:
    """The key at *at*, and where its value begins."""
    key = _STRING.match(text, at)
    if key is None:
        raise NotJson(f"expected a key at character {at}")
    colon = _skip(text, key.end())
    if text[colon : colon + 1] != ":":
        raise NotJson(f"expected a colon at character {colon}")
    return json.loads(key[0]), _skip(text, colon + 1)


def _value(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at *at*, and where it ends. Raises NotJson."""
    first = text[at : at + 1]
    if first and first in _CLOSED_BY:
        found = _container(text, at)
        if found.listed:
            return [member.holds for member in found.members], found.end + 1
        return {member.key: member.holds for member in found.members}, found.end + 1
    plain = (_STRING if first == '"' else _PLAIN).match(text, at)
    if plain is None:
        raise NotJson(f"expected a value at character {at}")
    try:
        return json.loads(plain[0]), plain.end()
    except ValueError:
        raise NotJson(f"no value: {plain[0][:20]!r} at character {at}") from None
