"""Changing a profile's ``config.yaml``: locked, against the file of now, checked, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from hermes import files
from hermes.errors import ConfigError, Problem, StoreUnavailable
from hermes.profiles import Profile
from hermes.settings import yaml_file
from hermes.settings.checking import problems_of
from hermes.settings.layers import Keys, Layer, file_layer
from hermes.settings.own import found
from hermes.settings.schema import OWN

_EXAMPLE = "for example memory.provider"
NEW_FILE = b"memory:\n  provider: local\n"
"""What a new ``config.yaml`` says: without it the profile used ``local``, and it goes on doing so."""


@attrs.frozen
class Written:
    """What a write did. *changed* is False where the file said it already."""

    path: Path
    changed: bool
    created: bool


def set_value(profile: Profile, key: str | Sequence[str], value: Any) -> Written:
    """Set one key (dotted, or the keys one by one) in the profile's ``config.yaml``.

    Raises ConfigError for a value that its key does not take or a key that nothing reads, EditRefused where
    the file cannot be changed in one line, StoreUnavailable where it cannot be read, locked or written.
    """
    return change(profile, {key if isinstance(key, str) else tuple(key): value}, strict=True)


def unset_value(profile: Profile, key: str | Sequence[str]) -> Written:
    """Remove one key from the profile's ``config.yaml``; ``changed`` is False if it is not there."""
    return change(profile, {}, remove=[key if isinstance(key, str) else tuple(key)])


def change(
    profile: Profile,
    values: Mapping[str | Keys, Any],
    *,
    remove: Iterable[str | Keys] = (),
    strict: bool = False,
) -> Written:
    """Set and remove several keys in one write; all of it or nothing. A mapping as a value is set key by key.

    With *strict*, a key of a section of ours that nothing reads is refused too. Raises what ``set_value``
    raises.
    """
    path = profile.paths.config
    wanted = list(_leaves(values))
    for keys, value in wanted:
        if len(keys) == 1 and keys[0] in OWN and value != {}:
            raise ConfigError(
                [Problem(keys[0], f"expected a key below it, {found(value)}")], next_step=_EXAMPLE
            )
    unwanted = [_keys(key) for key in remove]
    with files.locked(path):
        raw = files.read_bytes(path)
        if raw is None and not wanted:
            return Written(path, changed=False, created=False)
        old = raw if raw is not None else _first_content(profile, wanted)
        new = _edited(old, wanted, unwanted, path)
        if new == raw:
            return Written(path, changed=False, created=False)
        _refuse_mistakes(old, new, path, strict=strict)
        _write(path, new)
    return Written(path, changed=True, created=raw is None)


def content_of(profile: Profile) -> bytes:
    """What ``config.yaml`` holds, or what a first one would start from. Raises StoreUnavailable."""
    raw = files.read_bytes(profile.paths.config)
    return _first_content(profile, ()) if raw is None else raw


def replace(profile: Profile, old: bytes, new: bytes) -> list[Problem]:
    """Put *new* in the place of the whole ``config.yaml``, which was *old* when it was read.

    Returns the problems that stop nothing. Raises ConfigError for the others, StoreUnavailable if somebody
    changed the file meanwhile.
    """
    path = profile.paths.config
    with files.locked(path):
        problems = _problems(new, path)
        if any(problem.fatal for problem in problems):
            raise ConfigError(problems)
        if content_of(profile) != old:
            raise StoreUnavailable(
                path, "somebody else changed it meanwhile", next_step="start again from it"
            )
        _write(path, new)
    return problems


def _write(path: Path, content: bytes) -> None:
    try:
        files.write_atomic(path, content)
    except OSError as exc:
        raise StoreUnavailable(path, f"cannot be written: {files.describe_failure(path, exc)}") from exc


def _edited(raw: bytes, wanted: Iterable[tuple[Keys, Any]], unwanted: Iterable[Keys], path: Path) -> bytes:
    from hermes.settings import edit

    for keys, value in wanted:
        raw = edit.set_key(raw, keys, value, path)
    for keys in unwanted:
        raw = edit.unset_key(raw, keys, path) or raw
    return raw


def _first_content(profile: Profile, wanted: Iterable[tuple[Keys, Any]]) -> bytes:
    """What the first write starts from: the choice that held so far, unless something else makes it."""
    if any(keys == ("memory", "provider") for keys, _ in wanted):
        return b""
    for kind, path in (("common", profile.paths.common), ("local", profile.paths.local_config)):
        layer = file_layer(kind, path)
        memory = layer.data.get("memory") if layer else None
        if isinstance(memory, Mapping) and memory.get("provider") is not None:
            return b""
    return NEW_FILE


def _refuse_mistakes(old: bytes, new: bytes, path: Path, *, strict: bool) -> None:
    known = {(problem.key, problem.what) for problem in _problems(old, path)}
    wrong = [
        problem._replace(path=None, line=None)
        for problem in _problems(new, path)
        if (problem.fatal or strict) and (problem.key, problem.what) not in known
    ]
    if wrong:
        raise ConfigError(wrong, next_step="nothing was changed")


def _problems(raw: bytes, path: Path) -> list[Problem]:
    data, text = yaml_file.parse(raw, path)
    return problems_of(Layer("profile", str(path), data, path, text))


def _leaves(values: Mapping[str | Keys, Any]) -> Iterator[tuple[Keys, Any]]:
    for key, value in values.items():
        keys = _keys(key)
        if isinstance(value, Mapping) and value:
            yield from _leaves({(*keys, str(inner)): item for inner, item in value.items()})
        else:
            yield keys, value


def _keys(key: str | Keys) -> Keys:
    keys = tuple(key.split(".")) if isinstance(key, str) else key
    if not keys or not all(keys):
        raise ConfigError([Problem(str(key), "no key of a setting")], next_step=_EXAMPLE)
    return keys
