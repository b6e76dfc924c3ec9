"""One key of a YAML file changed, every other byte as it was; what cannot be changed that way is refused.

ruamel.yaml finds the place. The result is read back by a YAML 1.1 and a YAML 1.2 reader: in both the key has
its new value and nothing else differs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes.errors import EditRefused
from hermes.settings import yaml_file
from hermes.settings.layers import FromText, dotted

BOM = b"\xef\xbb\xbf"
_PLAIN = re.compile(r"[A-Za-z_/][\w./+-]*(?: [\w./+-]+)*", re.ASCII)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_STANDARD_TAG = "tag:yaml.org,2002:"
_ABSENT = object()


def set_key(raw: bytes, keys: Sequence[str], value: Any, path: Path | None = None) -> bytes:
    """*raw* with *keys* set to *value*: the bytes of the old value replaced, or lines inserted.

    *value* is a text, a number, a boolean, None, a list of those, or an empty mapping. Raises EditRefused
    with the line and the reason.
    """
    return _Edit(raw, keys, path).set(value)


def unset_key(raw: bytes, keys: Sequence[str], path: Path | None = None) -> bytes | None:
    """*raw* without the lines of *keys*, and without those of a section that would be left empty.

    None if the key is not there. Raises EditRefused with the line and the reason.
    """
    return _Edit(raw, keys, path).unset()


def written(value: Any) -> str:
    """*value* in one line of YAML that readers of 1.1 and of 1.2 read alike. Raises EditRefused."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
        case str():
            return _written_text(str(value))
        case list() | tuple() if not any(isinstance(item, list | tuple | dict) for item in value):
            return "[" + ", ".join(_quoted(v) if isinstance(v, str) else written(v) for v in value) + "]"
        case dict() if not value:
            return "{}"
    kind = (
        "infinity or not-a-number"
        if isinstance(value, float)
        else f"a {type(value).__name__} with others in it"
    )
    raise EditRefused(f"{kind} is not written by this command")


def _written_text(text: str) -> str:
    if _PLAIN.fullmatch(text) and all(_same(read, text) for read in _read_both(text)):
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    def escaped(char: str) -> str:
        if char in _ESCAPES or (char.isprintable() and char != "\ufeff"):
            return _ESCAPES.get(char, char)
        code = ord(char)
        if 0xD800 <= code <= 0xDFFF:
            raise EditRefused("the text holds half of a character (a lone surrogate)")
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return '"' + "".join(map(escaped, text)) + '"'


class _Edit:
    """One change of one file. Indices are into ``text``, which has no byte order mark."""

    def __init__(self, raw: bytes, keys: Sequence[str], path: Path | None) -> None:
        self.path = path
        self.keys = tuple(str(key) for key in keys)
        self.bom = BOM if raw.startswith(BOM) else b""
        self.text = yaml_file.decode(raw, path)
        if tab := re.search(r"^ *\t", self.text, re.MULTILINE):
            self._refuse(self.text.count("\n", 0, tab.end()) + 1, "a tab indents this line")
        self.before = self._readings(self.text)
        self.newline = "\r\n" if "\r\n" in self.text else "\n"

    def set(self, value: Any) -> bytes:
        line_end = written(value)
        root = self._root()
        node, above = root, None
        colon = 0
        for depth, key in enumerate(self.keys):
            if node is None or _is_null(node):
                if node is not None and node.value and not node.value.isspace():
                    self._refuse(node, "it is written as null")
                column = above.start_mark.column + self._step(root) if above else 0
                index = self._line_end(colon) if above else self._end_of_root(None)
                return self._checked(self._insert(index, column, self.keys[depth:], line_end), value)
            pair = self._pair(node, key)
            if pair is None:
                index = self._end_of_root(node) if node is root else self._after(node)
                return self._checked(
                    self._insert(index, node.start_mark.column, self.keys[depth:], line_end), value
                )
            above, node, colon = node, pair[1], self._colon(pair[0])
        assert node is not None
        start, end = self._place_of(node, colon)
        space = "" if self.text[start - 1].isspace() else " "
        return self._checked(self.text[:start] + space + line_end + self.text[end:], value)

    def unset(self) -> bytes | None:
        node = self._root()
        pairs: list[tuple[MappingNode, tuple[Node, Node]]] = []
        for key in self.keys:
            if node is None or _is_null(node):
                return None
            pair = self._pair(node, key)
            if pair is None:
                return None
            pairs.append((node, pair))
            node = pair[1]
        _, (key_node, value_node) = pairs[-1]
        start, end = self._lines_of(key_node, value_node)
        text = self.text[:start] + self.text[end:]
        for (mapping, _), (_, above) in zip(reversed(pairs[1:]), reversed(pairs[:-1]), strict=True):
            if len(mapping.value) > 1:
                break
            # `section:` with nothing below it would be read as null, which other programs do not expect
            line = self._line_start(above[0].start_mark.index)
            text = text[:line] + text[self._line_end(line) :]
        return self._checked(text, _ABSENT)

    # where things are

    def _root(self) -> Any:
        try:
            documents = list(YAML(pure=True).compose_all(self.text))
        except YAMLError as exc:
            self._refuse(_line(exc), f"not YAML: {_said(exc)}")
        if len(documents) > 1:
            self._refuse(documents[1], "a second document starts here")
        return documents[0] if documents else None

    def _pair(self, node: Any, key: str) -> tuple[Node, Node] | None:
        """Key and value of *key* in a plain block mapping; everything that is none is refused."""
        if not isinstance(node, MappingNode):
            self._refuse(node, f"{key!r} would have to stand below something that is no mapping")
        if node.anchor:
            self._refuse(node, f"the anchor &{node.anchor}: what refers to it would change too")
        if node.flow_style:
            self._refuse(node, "a mapping in braces")
        if not str(node.tag).startswith(_STANDARD_TAG):
            self._refuse(node, f"the tag {node.tag}")
        if merge := next((name for name, _ in node.value if name.tag.endswith(":merge")), None):
            self._refuse(merge, "a merge key (<<)")
        found = [pair for pair in node.value if isinstance(pair[0], ScalarNode) and pair[0].value == key]
        return found[0] if found else None

    def _colon(self, key: Any) -> int:
        """The index after the colon that follows *key*."""
        line = self.text[self._line_start(key.start_mark.index) : key.start_mark.index]
        match = re.compile(r"[ \t]*:").match(self.text, key.end_mark.index)
        if line.strip() or match is None:
            self._refuse(key, "this key does not stand at the start of its line")
        return int(match.end())

    def _place_of(self, node: Any, colon: int) -> tuple[int, int]:
        """Where the bytes of a value start and end."""
        if node.anchor:
            self._refuse(node, f"the anchor &{node.anchor}: what refers to it would change too")
        if not isinstance(node, ScalarNode) and not node.flow_style:
            self._refuse(node, "the value is written over several lines")
        if isinstance(node, MappingNode) and node.value:
            self._refuse(node, "a mapping in braces")
        start, end = node.start_mark.index, node.end_mark.index
        if isinstance(node, ScalarNode) and start == end:
            return colon, colon  # `key:` and nothing after it
        if self.text[start] in "!&*":
            self._refuse(node, "a tag, an anchor or an alias")
        if "\n" in self.text[start:end] or ("\n" in self.text[colon:start] and "#" in self.text[colon:start]):
            self._refuse(node, "the value is written over several lines")
        return start, end

    def _after(self, mapping: MappingNode) -> int:
        """Where a new line at the end of *mapping* goes: before the comments of what follows it."""
        for key, value in reversed(mapping.value):
            end = self._last_index(key, value)
            if end is not None:
                return self._line_end(end)
        return self._line_start(mapping.value[0][0].start_mark.index)

    def _end_of_root(self, root: MappingNode | None) -> int:
        """The end of the file; where a document end marker stands, the end of the last value."""
        if re.search(r"^\.\.\.", self.text, re.MULTILINE):
            return (
                self._after(root)
                if root is not None and root.value
                else self._refuse(None, "a document end (...)")
            )
        return len(self.text)

    def _last_index(self, key: Node, node: Node) -> int | None:
        """An index in the last line of a value, or None where its end is not exactly known."""
        while isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
            if isinstance(node, MappingNode):
                key, node = node.value[-1]
            else:
                node = node.value[-1]
                if isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index:
                    return None
        if isinstance(node, ScalarNode):
            if node.style in ("|", ">"):
                return None
            if node.start_mark.index == node.end_mark.index:
                return self._colon(key)
        return int(max(node.end_mark.index - 1, key.end_mark.index))

    def _lines_of(self, key: Node, value: Node) -> tuple[int, int]:
        """Start and end of the lines that *key* and its value take."""
        self._colon(key)
        start = self._line_start(key.start_mark.index)
        last = self._last_index(key, value)
        if last is not None:
            return start, self._line_end(last)
        return start, self._end_of_block(self._line_end(start), key.start_mark.column)

    def _end_of_block(self, index: int, column: int) -> int:
        """The end of the lines from *index* on that are indented deeper than *column*."""
        end = index
        while index < len(self.text):
            following = self._line_end(index)
            line = self.text[index:following]
            if line.strip():
                if len(line) - len(line.lstrip(" ")) <= column and not line.lstrip(" ").startswith("- "):
                    break
                end = following
            index = following
        return end

    def _line_start(self, index: int) -> int:
        return self.text.rfind("\n", 0, index) + 1

    def _line_end(self, index: int) -> int:
        """The index after the line break of the line that *index* is in."""
        return self.text.find("\n", index) + 1 or len(self.text)

    def _step(self, root: Any) -> int:
        """By how many spaces this file indents."""
        for _, value in root.value if isinstance(root, MappingNode) else ():
            if isinstance(value, MappingNode) and not value.flow_style and value.start_mark.column:
                return max(1, min(8, int(value.start_mark.column - root.start_mark.column)))
        return 2

    def _insert(self, index: int, column: int, keys: Sequence[str], line_end: str) -> str:
        step = self._step(self._root())
        lines = [" " * (column + step * depth) + written(key) + ":" for depth, key in enumerate(keys)]
        head = self.text[:index]
        head += self.newline if head and not head.endswith("\n") else ""
        return head + self.newline.join(lines) + f" {line_end}" + self.newline + self.text[index:]

    # what comes of it

    def _checked(self, text: str, value: Any) -> bytes:
        """The bytes of *text*, after both readers found the new value and everything else as it was."""
        for old, new in zip(self.before, self._readings(text), strict=True):
            said = _find(new, self.keys)
            if not (said is _ABSENT if value is _ABSENT else _same(said, _as_read(value))):
                self._refuse(None, f"{dotted(self.keys)} would not be read back as it was given")
            if not _same(_without(old, self.keys), _without(new, self.keys)):
                self._refuse(None, "another key would change")
        try:
            return self.bom + text.encode()
        except UnicodeEncodeError:
            self._refuse(None, "the text holds half of a character (a lone surrogate)")

    def _readings(self, text: str) -> tuple[Any, Any]:
        first, _ = yaml_file.parse(text.encode("utf-8", "surrogatepass"), self.path, own=None)
        try:
            return first, YAML(typ="safe", pure=True).load(text) or {}
        except YAMLError as exc:
            self._refuse(_line(exc), f"a reader of YAML 1.2 cannot read it: {_said(exc)}")
        except (ValueError, AttributeError, TypeError) as exc:
            self._refuse(None, f"a reader of YAML 1.2 cannot read it: {exc}")

    def _refuse(self, where: Node | int | None, reason: str) -> NoReturn:
        line = where if isinstance(where, int) or where is None else where.start_mark.line + 1
        raise EditRefused(reason, path=self.path, line=line, key=dotted(self.keys))


def _is_null(node: Any) -> bool:
    return isinstance(node, ScalarNode) and node.tag == f"{_STANDARD_TAG}null"


def _read_both(text: str) -> Iterator[Any]:
    yield yaml_file.scalar(text)
    yield YAML(typ="safe", pure=True).load(text)


def _as_read(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_read(item) for item in value]
    return str(value) if isinstance(value, FromText) else value


def _find(data: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(data, Mapping) or key not in data:
            return _ABSENT
        data = data[key]
    return data


def _without(data: Any, keys: Sequence[str]) -> Any:
    """*data* without *keys*, and without the mappings on the way that are empty then: they say nothing."""
    if not keys or not isinstance(data, Mapping):
        return data
    rest = {key: value for key, value in data.items() if key != keys[0]}
    if keys[0] in data and len(keys) > 1 and (below := _without(data[keys[0]], keys[1:])):
        rest[keys[0]] = below
    return rest


def _same(left: Any, right: Any) -> bool:
    """Equal in value and type all the way down; not-a-number equals itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right) or (isinstance(left, float) and math.isnan(left) and math.isnan(right))


def _line(exc: YAMLError) -> int | None:
    mark = exc.problem_mark if isinstance(exc, MarkedYAMLError) else None
    return mark.line + 1 if mark else None


def _said(exc: YAMLError) -> str:
    problem = getattr(exc, "problem", None)
    return " ".join(str(problem or exc).split())
