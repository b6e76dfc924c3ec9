"""``.env``: the secrets of one profile, read without expansion and changed line by line."""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hermes.errors import ConfigError, EditRefused, Problem, StoreUnavailable, UsageError
from hermes.files import describe_failure, locked, read_bytes, write_atomic
from hermes.locks import PRIVATE_FILE

if TYPE_CHECKING:
    from dotenv.parser import Binding

_BOM = "\ufeff"
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=-]+")
_BINDING = re.compile(
    r"""(?P<lead>\s*(?:export[^\S\r\n]+)?(?:'[^']+'|[^=\#\s]+))   # blank lines above, export, the key
        [^\S\r\n]*(?:=[^\S\r\n]*
          (?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?!\#)[^\r\n]*?|)  # the value
        )?
        (?P<comment>(?:[^\S\r\n]+\#[^\r\n]*)?)
        (?P<end>[^\S\r\n]*(?:\r\n|\n|\r)?)\Z""",
    re.DOTALL | re.VERBOSE,
)


@attrs.frozen
class Written:
    """What ``set_values`` did to the file."""

    changed: tuple[str, ...] = ()
    """The keys whose value is another than before."""
    tightened_from: int | None = None
    """The mode that the file had, where others could read it."""


def read(path: Path) -> dict[str, str]:
    """The variables of *path*, as they are written: ``${X}`` stays ``${X}``. Empty if there is no such file.

    A line that cannot be read defines nothing: see ``problems``. Raises StoreUnavailable if the file cannot
    be read, ConfigError if a value is not UTF-8 or holds a NUL.
    """
    content = read_bytes(path)
    return {} if content is None else parse(content, path)


def parse(content: bytes, path: Path) -> dict[str, str]:
    """``read`` for content that is at hand; *path* is for errors."""
    values: dict[str, str] = {}
    wrong = []
    for binding in _bindings(_text(content)):
        if binding.key is None or binding.value is None:
            continue
        if not _is_clean(binding.key + binding.value):
            wrong.append(
                Problem(_shown(binding.key), "not UTF-8 text, or with a NUL", path, _line_of(binding))
            )
        values[binding.key] = binding.value
    if wrong:
        raise ConfigError(wrong, next_step=f"mend that line in {path}; the file must be UTF-8")
    return values


def problems(path: Path) -> list[Problem]:
    """The lines of *path* that define nothing because they cannot be read. Raises StoreUnavailable."""
    content = read_bytes(path)
    return [
        Problem("", "cannot be read: is a quote left open?", path, _line_of(binding), fatal=False)
        for binding in _bindings(_text(content or b""))
        if binding.error
    ]


def set_values(path: Path, values: Mapping[str, str | None]) -> Written:
    """Set each key of *values* in *path*, or remove it where the value is None.

    Comments, order, line ends and lines that are not understood stay. The file is 0600 from birth; one that
    others could read is made private. All or nothing, under a lock.

    Raises UsageError for a key or a value that no ``.env`` can hold, EditRefused if another line would change
    with it, StoreUnavailable if the file cannot be read or written.
    """
    with_values(b"", values, path)  # what no file can hold is refused before one is touched
    with locked(path):
        content = read_bytes(path) or b""
        before = parse(content, path)
        edited = with_values(content, values, path)
        changed = tuple(k for k in values if before.get(k) != values[k])
        loose = _loose_mode(path)
        if edited != content or loose is not None:
            try:
                write_atomic(path, edited, mode=PRIVATE_FILE)
            except OSError as exc:
                raise StoreUnavailable(path, describe_failure(path, exc)) from exc
    return Written(changed, loose)


def with_values(content: bytes, values: Mapping[str, str | None], path: Path) -> bytes:
    """The *content* of a ``.env`` with *values* set or removed. Raises as ``set_values``."""
    for key, value in values.items():
        if value is not None:
            check_value(key, value)
    text = _edited(_text(content), values)
    encoded = text.encode("utf-8", "surrogateescape")
    wanted = {k: v for k, v in {**parse(content, path), **values}.items() if v is not None}
    if parse(encoded, path) != wanted:
        reason = "a line near it cannot be read: is a quote left open?"
        raise EditRefused(reason, path=path, line=_first_error(text))
    return encoded


def check_value(key: str, value: str) -> None:
    """Raises UsageError if ``key=value`` cannot stand in a ``.env``; the message never holds the value."""
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"{_shown(key)!r} cannot be the name of a variable",
            next_step="use A-Z, 0-9 and _, no digit first",
        )
    if "\0" in value:
        raise UsageError(f"the value of {key} holds a NUL character", next_step="leave it out")
    if len(f"{value}.".splitlines()) > 1:  # other readers break lines at more than \\n
        raise UsageError(
            f"the value of {key} holds a line break",
            next_step="a value is one line; put longer ones into a file",
        )
    if not _is_clean(value):
        raise UsageError(f"the value of {key} is not text that UTF-8 can hold", next_step="paste it again")


def quoted(value: str) -> str:
    """*value* as it stands after ``KEY=``: python-dotenv reads the same back, and a shell where it can."""
    if _PLAIN.fullmatch(value):
        return value
    if "'" not in value and "\\" not in value:
        return f"'{value}'"
    if not re.search(r"[$`]", value):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _edited(text: str, values: Mapping[str, str | None]) -> str:
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    bindings = _bindings(body)
    last = {binding.key: index for index, binding in enumerate(bindings)}
    parts = []
    for index, binding in enumerate(bindings):
        original = binding.original.string
        value = values.get(binding.key or "")
        if binding.key not in values:
            parts.append(original)
        elif value is None or last[binding.key] != index:
            parts.append(_blank_lines_of(original))  # an older line with the old secret goes as well
        else:
            parts.append(_replaced(original, value))
    end = "\r\n" if "\r\n" in body else "\n"
    for key, value in values.items():
        if value is not None and key not in last:
            if parts and not "".join(parts).endswith(("\n", "\r")):
                parts.append(end)
            parts.append(f"{key}={quoted(value)}{end}")
    return bom + "".join(parts)


def _replaced(original: str, value: str) -> str:
    match = _BINDING.fullmatch(original)
    if match is None:
        return original  # the check that follows refuses the edit
    return f"{match['lead']}={quoted(value)}{match['comment']}{match['end']}"


def _blank_lines_of(original: str) -> str:
    """The parser counts the blank lines above a line as part of it."""
    lead = original[: len(original) - len(original.lstrip())]
    return lead[: max(lead.rfind("\n"), lead.rfind("\r")) + 1]


def _bindings(text: str) -> list[Binding]:
    from dotenv.parser import parse_stream  # not needed where there is no .env

    return list(parse_stream(io.StringIO(text.removeprefix(_BOM), newline="")))


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _line_of(binding: Binding) -> int:
    original = binding.original
    lead = original.string[: len(original.string) - len(original.string.lstrip())]
    return original.line + len(re.findall(r"\r\n|\n|\r", lead))


def _first_error(text: str) -> int | None:
    return next((_line_of(binding) for binding in _bindings(text) if binding.error), None)


def _is_clean(text: str) -> bool:
    return "\0" not in text and not re.search("[\ud800-\udfff]", text)


def _shown(key: str) -> str:
    return key.encode("ascii", "backslashreplace").decode()[:60]


def _loose_mode(path: Path) -> int | None:
    """The mode of *path* where group or others may read it."""
    if os.name != "posix":
        return None
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
    return mode if mode & 0o077 else None
