"""Settings files that move to another home: paths into the old one follow, secrets stay behind.

A file is changed only where it must be, and only if it then says the same otherwise; else it is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import yaml

from hermes import dotenv
from hermes.errors import ConfigError, Problem
from hermes.profiles import DEFAULT, Profile
from hermes.secret_names import is_secret, names_secret, without_secrets

_SHARED = ("plugins", "common.yaml")
_BOM = "\ufeff"


@attrs.frozen
class Moved:
    """The new content of a file, and what was done to it."""

    content: bytes
    removed: tuple[str, ...] = ()
    """Dotted keys whose secret was taken out."""
    rewritten: bool = False


class _Leaf(NamedTuple):
    key: str
    value: str
    line: int
    start: int
    end: int
    secret: bool


@attrs.frozen
class Move:
    """From the home of *source* to the home *new*, in the spellings that a file may use."""

    source: Profile
    new: Path
    environ: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    def text(self, text: str) -> str:
        """*text* with each path into the old home led to the new one."""
        for old, new in self._spellings():
            text = self._pattern(old).sub(lambda _, new=new: new, text)  # type: ignore[misc]
        return text

    def problem(self, value: str) -> str:
        """Why *value*, after ``text`` changed it, still leads to a wrong home; empty if it does not."""
        for old, _ in self._spellings():
            if self._pattern(old).search(value):
                return f"points into the home of {self.source.name!r}"
            other = re.search(rf"{_START}{re.escape(old)}/profiles/([\w.-]+)", value)
            if self._is_default() and other and other[1] != self.new.name:
                return f"points into the home of {other[1]!r}"
        return f"leads into the home of {self.source.name!r}" if self._leads_inside(value) else ""

    def _spellings(self) -> Iterator[tuple[str, str]]:
        root, home = str(self.source.root), self.source.home
        tail = "" if self._is_default() else f"/profiles/{self.source.name}"
        roots = {root: None, os.path.realpath(root): None}
        user_home = self.environ.get("HOME", "").rstrip("/")
        if user_home and root.startswith(f"{user_home}/"):
            roots.update(
                dict.fromkeys(f"{short}{root[len(user_home) :]}" for short in ("~", "$HOME", "${HOME}"))
            )
        for spelling in roots:
            yield spelling + tail, f"{spelling}/profiles/{self.new.name}"
        if (real := os.path.realpath(home)) not in {r + tail for r in roots}:
            yield real, str(self.new)

    def _pattern(self, old: str) -> re.Pattern[str]:
        beyond = (
            rf"(?!/(?:profiles|trash|{'|'.join(map(re.escape, _SHARED))}){_END})"
            if self._is_default()
            else ""
        )
        return re.compile(f"{_START}{re.escape(old)}{beyond}{_END}")

    def _is_default(self) -> bool:
        return self.source.name == DEFAULT

    def _leads_inside(self, value: str) -> bool:
        """By a link or by ``..``, which no pattern shows."""
        if not value.startswith(("/", "~/")) or "\n" in value or "\0" in value:
            return False
        path = self.environ.get("HOME", "~") + value[1:] if value.startswith("~") else value
        place, home = Path(os.path.realpath(path)), Path(os.path.realpath(self.source.home))
        if not place.is_relative_to(home) or place.is_relative_to(os.path.realpath(self.new)):
            return False
        below = place.relative_to(home).parts
        return not (self._is_default() and below and below[0] in (*_SHARED, "profiles"))


_START = r"(?:(?<![\w.\-/])|(?<=://)|(?<=:///))"
_END = r"(?![\w.\-])"


def move(path: Path, content: bytes, how: Move, *, secrets: bool) -> Moved:
    """*content* of the settings file *path*, made ready for its new home.

    With *secrets* they are kept. Raises ConfigError with file and line where it cannot be done safely.
    """
    if path.name == ".env":
        return _move_dotenv(path, content, how)
    text = _decoded(path, content)
    if text.startswith(_BOM):
        moved = move(path, content.removeprefix(_BOM.encode()), how, secrets=secrets)
        return attrs.evolve(moved, content=_BOM.encode() + moved.content)
    return (_move_json if path.suffix == ".json" else _move_yaml)(path, text, how, secrets)


def _move_dotenv(path: Path, content: bytes, how: Move) -> Moved:
    old = dotenv.parse(content, path)
    new = {key: how.text(value) for key, value in old.items()}
    for key, value in new.items():
        if reason := how.problem(value):
            raise _refused(path, None, key, reason)
    changed: dict[str, str | None] = {key: value for key, value in new.items() if value != old[key]}
    return Moved(dotenv.with_values(content, changed, path), rewritten=bool(changed))


class _JsonMove:
    """One walk through a JSON value."""

    def __init__(self, path: Path, text: str, how: Move, secrets: bool) -> None:
        self.path, self.text, self.how, self.secrets = path, text, how, secrets
        self.removed: list[str] = []
        self.rewritten = False

    def walk(self, value: Any, key: str = "", *, secret: bool = False) -> Any:
        """*value* for the new home, or _GONE."""
        if isinstance(value, dict):
            moved = {self.moved(k, key): self._member(v, key, k, secret) for k, v in value.items()}
            return {k: v for k, v in moved.items() if v is not _GONE}
        if isinstance(value, list):
            return [kept for item in value if (kept := self.walk(item, key, secret=secret)) is not _GONE]
        if not self.secrets and _holds_secret(key, value, secret):
            self.removed.append(key)
            return _GONE
        return self.moved(value, key) if isinstance(value, str) else value

    def moved(self, value: str, key: str) -> str:
        """A text with its paths led to the new home; raises ConfigError if one cannot be."""
        new = self.how.text(value)
        self.rewritten |= new != value
        if reason := self.how.problem(new):
            raise _refused(self.path, _line_with(self.text, key), key, reason)
        return new

    def _member(self, value: Any, key: str, name: str, secret: bool) -> Any:
        return self.walk(value, f"{key}.{name}" if key else name, secret=secret or names_secret(name))


_GONE = object()


def _move_json(path: Path, text: str, how: Move, secrets: bool) -> Moved:
    try:
        old = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _refused(path, getattr(exc, "lineno", None), "", f"cannot be read as JSON: {exc}") from exc
    job = _JsonMove(path, text, how, secrets)
    new = job.walk(old)
    if not job.removed and not job.rewritten:
        return Moved(text.encode())
    dumped = json.dumps({} if new is _GONE else new, ensure_ascii=False, indent=2) + "\n"
    return Moved(dumped.encode("utf-8", "backslashreplace"), tuple(job.removed), job.rewritten)


def _move_yaml(path: Path, text: str, how: Move, secrets: bool) -> Moved:
    leaves = _leaves(path, text)
    taken = {} if secrets else {leaf.start: leaf for leaf in leaves if leaf.secret}
    bare = text if secrets else _without(text, taken)
    new = how.text(bare)
    wanted = [(how.text(leaf.key), "" if leaf.start in taken else how.text(leaf.value)) for leaf in leaves]
    _check_same(path, leaves, _leaves(path, new) if new != text else leaves, wanted)
    for leaf, (_, value) in zip(leaves, wanted, strict=True):
        if reason := how.problem(value):
            raise _refused(path, leaf.line, leaf.key, reason)
    return Moved(new.encode(), tuple(leaf.key for leaf in taken.values()), rewritten=new != bare)


def _without(text: str, taken: Mapping[int, _Leaf]) -> str:
    """*text* with the scalars of *taken* emptied, last one first, and secrets in comments taken out."""
    for start in sorted(taken, reverse=True):
        end = taken[start].end
        line_end = "\n" if text[start:end].endswith("\n") else ""
        text = f"{text[:start]}''{line_end}{text[end:]}"
    return _COMMENT.sub(lambda match: without_secrets(match[0]), text)


def _check_same(path: Path, old: list[_Leaf], new: list[_Leaf], wanted: list[tuple[str, str]]) -> None:
    found = [(leaf.key, leaf.value) for leaf in new]
    if found != wanted:
        at = next((leaf for leaf, n, w in zip(old, found, wanted, strict=False) if n != w), None)
        line, key = (at.line, at.key) if at else (None, "")
        raise _refused(path, line, key, "cannot be changed safely where it stands")


_COMMENT = re.compile(r"(?m)(?<!\S)#.*$")


def _leaves(path: Path, text: str) -> list[_Leaf]:
    """Every scalar of a YAML text, keys included, in the order of the file."""
    found: list[_Leaf] = []

    seen: set[int] = set()

    def visit(node: yaml.Node, key: str, secret: bool) -> None:
        if isinstance(node, yaml.ScalarNode):
            start, end = node.start_mark, node.end_mark
            holds = _holds_secret(key, _plain_value(node), secret)
            found.append(_Leaf(key, node.value, start.line + 1, start.index, end.index, holds))
        elif id(node) not in seen:  # an alias leads to a node that was here already
            seen.add(id(node))
            for part in node.value:
                if isinstance(node, yaml.MappingNode):
                    name, value = part
                    word = name.value if isinstance(name, yaml.ScalarNode) else "?"
                    below = f"{key}.{word}" if key else word
                    visit(name, below, False)
                    visit(value, below, secret or names_secret(word))
                else:
                    visit(part, key, secret)

    try:
        for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
            visit(document, "", False)
    except (yaml.YAMLError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        reason = f"cannot be read as YAML: {getattr(exc, 'problem', None) or exc}"
        raise _refused(path, mark.line + 1 if mark else None, "", reason) from exc
    return found


def _plain_value(node: yaml.ScalarNode) -> object:
    kind = node.tag.rpartition(":")[2]
    stand_ins: dict[str, object] = {"bool": True, "null": None, "float": 0.0, "int": 0}
    return stand_ins.get(kind, node.value)


def _holds_secret(key: str, value: object, below_secret: bool) -> bool:
    """Numbers under ``tokens`` count something."""
    if isinstance(value, int) and "token" in key.lower():
        return False
    return is_secret("secret" if below_secret else "", value)


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = content[: exc.start].count(b"\n") + 1
        raise _refused(path, line, "", "not UTF-8 text") from exc


def _line_with(text: str, key: str) -> int | None:
    name = json.dumps(key.rpartition(".")[2], ensure_ascii=False)
    at = text.find(name)
    return text[:at].count("\n") + 1 if at >= 0 else None


def _refused(path: Path, line: int | None, key: str, reason: str) -> ConfigError:
    where = f"{path}:{line}" if line else str(path)
    return ConfigError([Problem(key, reason, path, line)], next_step=f"mend {where}, then try again")


def scalar(path: Path, content: bytes, key: str) -> str | None:
    """The text under the dotted *key* of the YAML file *path*, or None. Raises ConfigError."""
    wanted = [
        leaf.value for leaf in _leaves(path, _decoded(path, content).removeprefix(_BOM)) if leaf.key == key
    ]
    return wanted[-1] if len(wanted) > 1 else None  # the key itself is a leaf as well
