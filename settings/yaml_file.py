"""Reading a YAML file of settings: fast, strict about what it says, and with the line of everything."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from hermes.errors import ConfigError, Problem
from hermes.settings.schema import OWN

if yaml.__with_libyaml__:
    from yaml import CSafeLoader as _Base
else:
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

_MERGE = "tag:yaml.org,2002:merge"
_MANY = 1_000_000


class _Loader(_Base):
    """YAML 1.1 as PyYAML has it: existing homes were written for it. A key said twice is a mistake."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[tuple[str, int]] = []

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of *node*; keys that stand in it twice are noted with their line."""
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, ScalarNode) and key.tag != _MERGE:
                if (key.tag, key.value) in seen:
                    self.twice.append((key.value, key.start_mark.line + 1))
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def parse(raw: bytes, path: Path | None, own: Collection[str] | None = OWN) -> tuple[dict[Any, Any], str]:
    """The mapping that *raw* holds, and its text. An empty file is an empty mapping.

    A key that is given twice in one of the sections *own* (None: anywhere) is a mistake; elsewhere the last
    one counts, as it does for the programs that those sections belong to.

    Raises ConfigError, with the line, for anything that is not one YAML mapping in UTF-8.
    """
    text = decode(raw, path)
    loader: Any = None
    try:
        loader = _Loader(text)
        data = loader.get_single_data()
    except yaml.YAMLError as exc:
        raise ConfigError([_explain(exc, text, path)]) from None
    except RecursionError:
        raise ConfigError([Problem("", "it is nested too deeply", path)]) from None
    except (ValueError, OverflowError, AttributeError) as exc:  # a date of month 13, a number of 5,000 digits
        raise ConfigError([Problem("", f"a value cannot be read: {exc}", path)]) from None
    finally:
        if loader is not None:
            loader.dispose()
    if twice := [found for found in loader.twice if own is None or _section_at(text, found[1]) in own]:
        raise ConfigError([Problem(key, "this key is given twice", path, line) for key, line in twice])
    if data is None:
        return {}, text
    if not isinstance(data, dict):
        kind = "a list" if isinstance(data, list) else "a single value"
        raise ConfigError([Problem("", f"expected a mapping (lines of `key: value`), found {kind}", path, 1)])
    if "*" in text and "&" in text:
        _refuse_endless(data, path)
    return data, text


def given_twice(text: str) -> list[tuple[str, int]]:
    """The keys of a file that parses that stand in one mapping twice, each with its line."""
    loader = _Loader(text)
    try:
        loader.get_single_data()
        return loader.twice
    finally:
        loader.dispose()


def decode(raw: bytes, path: Path | None) -> str:
    """The text of a file; a byte order mark is dropped. Raises ConfigError for what is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        byte = raw[exc.start]
        raise ConfigError([Problem("", f"not UTF-8: byte 0x{byte:02x}", path, line)]) from None


def line_of(text: str, keys: Sequence[Any]) -> int | None:
    """The line of the key that *keys* lead to, or of the last of them that is there."""
    node = _composed(text)
    line: int | None = None
    for key in keys:
        if isinstance(node, SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
            continue
        pairs = node.value if isinstance(node, MappingNode) else ()
        found = next((pair for pair in pairs if getattr(pair[0], "value", None) == str(key)), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def _section_at(text: str, line: int) -> str:
    """The key of the first level that *line* stands at or below."""
    root = _composed(text)
    keys = [key for key, _ in root.value] if isinstance(root, MappingNode) else []
    above = [key.value for key in keys if key.start_mark.line + 1 <= line]
    return str(above[-1]) if above else ""


@lru_cache(maxsize=8)
def _composed(text: str) -> Node | None:
    try:
        return yaml.compose(text, Loader=_Base)
    except yaml.YAMLError:
        return None


def _explain(exc: yaml.YAMLError, text: str, path: Path | None) -> Problem:
    mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
    if mark is None:  # the reader: a character that no YAML file may hold
        position = getattr(exc, "position", 0)
        return Problem("", "a character that YAML does not allow", path, text.count("\n", 0, position) + 1)
    line = mark.line + 1
    lines = text.splitlines() or [""]
    if re.match(r"\s*\t", lines[min(mark.line, len(lines) - 1)]):
        return Problem("", "a tab indents this line; YAML wants spaces", path, line)
    said = getattr(exc, "problem", None) or getattr(exc, "context", None) or "not YAML"
    return Problem("", f"not YAML: {said}", path, line)


def _refuse_endless(data: Any, path: Path | None) -> None:
    """Aliases can make a value hold itself, or a small file mean more than any memory holds."""
    count = 0
    above: set[int] = set()

    def walk(value: Any) -> None:
        nonlocal count
        count += 1
        if count > _MANY or id(value) in above:
            raise ConfigError([Problem("", "its aliases (`*name`) never come to an end", path)])
        if isinstance(value, dict | list):
            above.add(id(value))
            for item in value.values() if isinstance(value, dict) else value:
                walk(item)
            above.discard(id(value))

    walk(data)


def scalar(text: str) -> Any:
    """What a reader of YAML 1.1 makes of *text* as a value; the text itself if it is no YAML."""
    try:
        return yaml.load(text, Loader=_Base)
    except (yaml.YAMLError, ValueError, OverflowError):
        return text
