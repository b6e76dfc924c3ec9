"""What a new profile takes over from another: settings, memory files, the providers' own settings files.

Databases, sessions, logs, locks, what waits for delivery or approval: these stay with their own profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from hermes.errors import HomeUnusable
from hermes.files import describe_failure, read_bytes
from hermes.profiles import DEFAULT, Profile
from hermes.relocate import Move, Moved, move, scalar

SETTINGS = ("config.yaml", "config.local.yaml")
SECRETS = (".env", "auth.json")
PROVIDER_FILES = ("honcho.json", "mem0.json", "supermemory.json", "hindsight/config.json")
_SHARED_BY_ALL = {"profiles", "trash", "active_profile", "common.yaml"}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@attrs.define
class Parts:
    """The files of a new home by their path in it, and what was done to them on the way."""

    files: dict[str, bytes]
    rewritten: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def collect(source: Profile, home: Path, *, secrets: bool, memory: bool, environ: Mapping[str, str]) -> Parts:
    """Read what *source* gives to a new profile at *home*. Reads only.

    Without *secrets* no ``.env`` and no ``auth.json`` is taken, and secrets are taken out of the other files.
    Raises StoreUnavailable, ConfigError with file and line where a file cannot be taken over safely.
    """
    settings = dict(_moved_settings(source, home, secrets=secrets, environ=environ))
    files = {name: moved.content for name, moved in settings.items()}
    if memory:
        files |= dict(_memory_files(source))
    return Parts(
        files,
        tuple(sorted(name for name, moved in settings.items() if moved.rewritten)),
        tuple(f"{name}: {key}" for name, moved in sorted(settings.items()) for key in moved.removed),
        tuple(_left_out(source, files)),
    )


def moved_in_place(source: Profile, home: Path, *, environ: Mapping[str, str]) -> dict[str, bytes]:
    """The settings files of *source* that must change when it moves to *home*, with their new content."""
    settings = _moved_settings(source, home, secrets=True, environ=environ)
    return {name: moved.content for name, moved in settings if moved.rewritten}


def _moved_settings(
    source: Profile, home: Path, *, secrets: bool, environ: Mapping[str, str]
) -> Iterator[tuple[str, Moved]]:
    how = Move(source, home, environ)
    names = [*SETTINGS, *(SECRETS if secrets else ()), *_provider_files(source)]
    for name in dict.fromkeys(names):
        path = source.home / name
        content = read_bytes(path)
        if content is not None:
            yield name, move(path, content, how, secrets=secrets)


def _provider_files(source: Profile) -> list[str]:
    """The known files, and the usual places for the provider that is switched on."""
    config = read_bytes(source.paths.config)
    provider = scalar(source.paths.config, config, "memory.provider") if config else None
    if provider is None or not _PLAIN_NAME.fullmatch(provider):
        return list(PROVIDER_FILES)
    own = (f"{provider}.json", f"{provider}/config.json", f"{provider}/config.yaml")
    return list(dict.fromkeys([*PROVIDER_FILES, *own]))


def _memory_files(source: Profile) -> Iterator[tuple[str, bytes]]:
    for path in _listed(source.paths.memories):
        if path.suffix == ".md" and not path.name.startswith(".") and path.is_file():
            content = read_bytes(path)
            if content is not None:
                yield f"memories/{path.name}", content


def _left_out(source: Profile, files: Mapping[str, bytes]) -> Iterator[str]:
    """Names in the source's home of which nothing was taken, and files beside those that were."""
    taken = {name.partition("/")[0] for name in files}
    for path in sorted(_listed(source.home)):
        if path.name in taken or path.name.endswith(".lock") or path.name == "locks":
            continue
        if source.name == DEFAULT and path.name in _SHARED_BY_ALL:
            continue
        yield path.name + ("/" if path.is_dir() else "")


def _listed(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]  # noqa: PTH208 - names only
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise HomeUnusable(folder, describe_failure(folder, exc)) from exc
