"""The layers of one profile's settings, lowest first, each as its source has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs

from hermes import files
from hermes.errors import Problem, UsageError
from hermes.profiles import Profile
from hermes.settings import yaml_file

ENV_PREFIX = "HERMES__"
"""Two underscores: ``HERMES_HOME`` and ``HERMES_PROFILE`` are no settings."""

Keys = tuple[Any, ...]
"""The keys that lead to a value, outermost first."""


class FromText(str):
    """A value that its source can only give as text; it is converted by the type that its key declares."""

    __slots__ = ()


@attrs.frozen
class Layer:
    """One source of settings. *kind* is one of KINDS; *path* and *text* are those of a file."""

    kind: str
    source: str
    data: Mapping[Any, Any]
    path: Path | None = None
    text: str = attrs.field(default="", repr=False)
    notes: tuple[Problem, ...] = ()

    def line_of(self, keys: Keys) -> int | None:
        """The line where *keys* stand, for a file."""
        if self.path is None:
            return None
        if self.kind != "dotenv":
            return yaml_file.line_of(self.text, keys)
        name = re.compile(rf"\s*(?:export\s+)?{re.escape(variable(keys))}\s*=", re.IGNORECASE)
        return next((n for n, line in enumerate(self.text.splitlines(), 1) if name.match(line)), None)

    def problem(self, keys: Keys, what: str, *, fatal: bool = True) -> Problem:
        """A mistake at *keys* of this layer."""
        if self.path is None and self.kind != "command":
            what = f"{what} ({variable(keys)} in the environment)"
        return Problem(dotted(keys), what, self.path, self.line_of(keys), fatal)


KINDS = ("default", "common", "profile", "local", "dotenv", "environment", "command")
"""packaged defaults, common.yaml, config.yaml, config.local.yaml, .env, the environment, ``--set``"""


def layers_of(
    profile: Profile, *, environ: Mapping[str, str], overrides: Mapping[str, Any] | Sequence[str] = ()
) -> tuple[Layer, ...]:
    """Every layer that *profile* has, lowest first; a file that does not exist is no layer.

    *environ* is the snapshot of the environment; *overrides* is what ``--set`` says, or a mapping whose keys
    may be dotted. Raises ConfigError or StoreUnavailable for a file that cannot be used, UsageError for an
    override that is no ``section.key=value``.
    """
    return tuple(read() for read in readers(profile, environ, overrides))


def readers(
    profile: Profile, environ: Mapping[str, str], overrides: Mapping[str, Any] | Sequence[str]
) -> Iterator[Callable[[], Layer]]:
    """One function per layer that exists, so that a caller can go on after one of them raised."""
    paths = profile.paths
    yield defaults
    for kind, path in (("common", paths.common), ("profile", paths.config), ("local", paths.local_config)):
        # a file that cannot be looked at is one that exists: reading it says why
        if _may_exist(path):
            yield partial(_existing_file_layer, kind, path)
    if _may_exist(paths.dotenv):
        yield partial(_dotenv_layer, paths.dotenv)
    yield partial(_environment_layer, "environment", "environment", environ)
    yield partial(_command_layer, overrides)


def file_layer(kind: str, path: Path) -> Layer | None:
    """The layer of one YAML file, or None if it does not exist."""
    raw = files.read_bytes(path)
    if raw is None:
        return None
    data, text = yaml_file.parse(raw, path)
    return Layer(kind, str(path), data, path, text)


@cache
def defaults() -> Layer:
    """What comes with the package. Nobody changes it: every reader copies."""
    data, _ = yaml_file.parse(Path(__file__).with_name("defaults.yaml").read_bytes(), None)
    return Layer("default", "packaged defaults", data)


def dotted(keys: Iterable[Any]) -> str:
    """``memory.timeouts.prefetch``, ``plugins.disabled[1]``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) and text else f".{key}" if text else str(key)
    return text


def variable(keys: Keys) -> str:
    """The environment variable that sets *keys*."""
    return ENV_PREFIX + "__".join(str(key) for key in keys).upper()


def deep_merge(lower: Mapping[Any, Any], upper: Mapping[Any, Any]) -> dict[Any, Any]:
    """*upper* over *lower*: mappings merge, everything else, lists too, is replaced. Both stay untouched."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        if isinstance(value, Mapping):
            merged[key] = deep_merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = list(value) if isinstance(value, list) else value
    return merged


def walk(data: Any, keys: Keys) -> Any:
    """The value that *keys* lead to. Raises KeyError. A key of digits also finds a number."""
    for key in keys:
        if not isinstance(data, Mapping):
            raise KeyError(key)
        if key not in data and isinstance(key, str) and key.isdecimal() and int(key) in data:
            key = int(key)
        data = data[key]
    return data


def _may_exist(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _existing_file_layer(kind: str, path: Path) -> Layer:
    return file_layer(kind, path) or Layer(kind, str(path), {}, path)  # gone since we looked


def _dotenv_layer(path: Path) -> Layer:
    raw = files.read_bytes(path)
    if raw is None or ENV_PREFIX.encode() not in raw.upper():
        return Layer("dotenv", str(path), {}, path)
    from hermes import dotenv

    layer = _environment_layer("dotenv", str(path), dotenv.parse(raw, path))
    return attrs.evolve(layer, path=path, text=raw.decode("utf-8", "replace"))


def _environment_layer(kind: str, source: str, environ: Mapping[str, str]) -> Layer:
    """``HERMES__A__B=v`` is ``{a: {b: "v"}}``; everything else in *environ* is none of ours."""
    named = [(name, value) for name, value in environ.items() if name.upper().startswith(ENV_PREFIX)]
    pairs, notes = [], []
    for name, value in sorted(named):
        keys = tuple(name[len(ENV_PREFIX) :].lower().split("__"))
        if len(keys) > 1 and all(keys):
            pairs.append((keys, FromText(value)))
        else:
            notes.append(Problem(name, f"expected {ENV_PREFIX}SECTION__KEY; it is ignored", fatal=False))
    data, clashes = _nest(pairs)
    notes += [
        Problem(variable(keys), "a longer name says more; it is ignored", fatal=False) for keys in clashes
    ]
    return Layer(kind, source, data, notes=tuple(notes))


def _command_layer(overrides: Mapping[str, Any] | Sequence[str]) -> Layer:
    if isinstance(overrides, Mapping):
        pairs = [(tuple(str(key).split(".")), value) for key, value in overrides.items()]
        data: dict[Any, Any] = {}
        for keys, value in pairs:
            for key in reversed(keys):
                value = {key: value}
            data = deep_merge(data, value)
        return Layer("command", "overrides", data)
    given = [parse_override(text) for text in overrides]
    data, clashes = _nest(sorted(dict(given).items(), key=lambda pair: len(pair[0])))
    if clashes:
        raise UsageError(
            f"--set gives both {dotted(clashes[0])} and something below it", next_step="keep one"
        )
    return Layer("command", "--set", data)


def parse_override(text: str) -> tuple[Keys, FromText]:
    """The keys and the value of one ``section.key=value``. Raises UsageError."""
    key, equals, value = text.partition("=")
    keys = tuple(part.strip() for part in key.split("."))
    if not equals or not all(keys):
        raise UsageError(f"--set {text!r} is no setting", next_step="--set memory.provider=local")
    return keys, FromText(value)


def _nest(pairs: Iterable[tuple[Keys, FromText]]) -> tuple[dict[Any, Any], list[Keys]]:
    """A mapping from keys and values, and the keys that a longer name took the place of."""
    data: dict[Any, Any] = {}
    clashes = []
    for keys, value in pairs:
        node = data
        for depth, key in enumerate(keys[:-1], 1):
            below = node.setdefault(key, {})
            if isinstance(below, FromText):
                clashes.append(keys[:depth])
                below = node[key] = {}
            node = below
        if isinstance(node.get(keys[-1]), dict):
            clashes.append(keys)
        else:
            node[keys[-1]] = value
    return data, clashes
