"""The settings of the profile, and its secrets."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes.compat import current
from hermes.errors import UsageError

Path_ = tuple[str, ...]
_KEPT = 32
_handed_out: list[tuple[dict[str, Any], dict[str, Any]]] = []
"""What ``load_config`` gave lately: the mapping itself, which may have been changed since, and a copy of then."""


def load_config() -> dict[str, Any]:
    """The settings as they are on disk now: all layers merged, plain, without secrets; the caller's to change."""
    config = current.profile().load_config()
    _handed_out.append((config, copy.deepcopy(config)))
    del _handed_out[:-_KEPT]
    return config


def load_config_readonly() -> dict[str, Any]:
    """The same, for callers that only look."""
    return load_config()


def save_config(config: Mapping[str, Any], **_: Any) -> None:
    """Write what is different in *config* from what ``load_config`` gave, against the file as it is now.

    A key that was given and is missing in *config* is removed from the file, if it stands there. A mapping
    that is no copy of what was given is merged, and removes nothing. Raises what the settings raise.
    """
    before, whole = _what_was_given(config)
    changed = list(_changed(before, config))
    removed = list(_removed(before, config)) if whole else []
    if changed or removed:
        current.profile().save_config(changed, removed)
    if isinstance(config, dict):
        _handed_out.append((config, copy.deepcopy(config)))
        del _handed_out[:-_KEPT]


def cfg_get(cfg: Mapping[str, Any] | None, *keys: str, default: Any = None) -> Any:
    """The value that *keys* lead to, also where it is None; *default* where they lead nowhere."""
    value: Any = cfg
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def get_hermes_home() -> Path:
    """The home of the profile."""
    return current.home()


def get_config_path() -> Path:
    """The settings file in the home."""
    return current.home() / "config.yaml"


def get_env_path() -> Path:
    """The file with the secrets in the home."""
    return current.home() / ".env"


def load_env() -> dict[str, str]:
    """The variables in the profile's ``.env``."""
    return current.profile().load_env()


def get_env_value(key: str) -> str | None:
    """The variable *key*, from ``.env``, else from the environment; None where it is in neither."""
    found = current.profile().secret(key)
    return os.environ.get(key) if found is None else found


get_env_value_prefer_dotenv = get_env_value


def save_env_value(key: str, value: str) -> None:
    """Set *key* in the profile's ``.env``. Raises UsageError for what no ``.env`` can hold."""
    current.profile().save_env(key, value)
    if current.serving().worker:  # a process of the plugin's own: its environment is the profile's
        os.environ[key] = value


def remove_env_value(key: str) -> bool:
    """Remove *key* from the profile's ``.env``; False if it is not there."""
    profile = current.profile()
    there = key in profile.load_env()
    if there:
        profile.save_env(key, None)
    if current.serving().worker:
        os.environ.pop(key, None)
    return there


def _what_was_given(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """What *config* was when it was handed out, and whether it speaks for all of it."""
    for given, then in reversed(_handed_out):
        if given is config:
            return then, True
    latest = _handed_out[-1][1] if _handed_out else current.profile().load_config()
    return latest, bool(_handed_out) and set(latest) <= set(config)


def _changed(
    before: Mapping[str, Any], after: Mapping[str, Any], at: Path_ = ()
) -> Iterator[tuple[Path_, Any]]:
    for name, value in after.items():
        path = (*at, str(name))
        old = before.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            yield from _changed(old, value, path)
        else:
            plain = _plain(value, path)
            if name not in before or not _same(old, plain):
                yield path, plain


def _removed(before: Mapping[str, Any], after: Mapping[str, Any], at: Path_ = ()) -> Iterator[Path_]:
    for name, old in before.items():
        if name not in after:
            yield (*at, str(name))
        elif isinstance(old, Mapping) and isinstance(after[name], Mapping):
            yield from _removed(old, after[name], (*at, str(name)))


def _same(old: Any, new: Any) -> bool:
    """Whether a file would say the same: True is not 1."""
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _plain(value: Any, path: Path_) -> Any:
    """*value* as the settings take it. Raises UsageError for what a settings file cannot hold."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, (*path, str(name))) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, path) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise UsageError(f"{'.'.join(path)}: a settings file cannot hold a {type(value).__name__}")
