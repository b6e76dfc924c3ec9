"""Plugins that lie in a folder: ``plugins/<name>/`` and ``plugins/<kind>/<name>/``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hermes.plugin_host.kinds import kind_of
from hermes.plugin_host.manifest import FILE, read
from hermes.plugin_host.plugin import KINDS, PLAIN_NAME, Plugin

INIT = "__init__.py"
_NO_PACKAGE = frozenset({"test", "tests", "docs", "examples", "scripts", "build", "dist", "node_modules"})


def below(place: Path, source: str, only: str = "") -> Iterator[Plugin]:
    """The plugins in the folder *place*, sorted by name; *only* the one of that name, where it is given."""
    for name in _names(place, only):
        if name not in KINDS:
            yield from _look(place / name, source, None)
    for kind in KINDS:
        yield from of_kind(place / kind, source, kind, only)


def of_kind(place: Path, source: str, kind: str, only: str = "") -> Iterator[Plugin]:
    """The plugins in a folder that is there for one *kind*."""
    for name in _names(place, only):
        yield from _look(place / name, source, kind)


def package_in(folder: Path) -> str | None:
    """The folder below *folder* that is the package: empty for itself, None where there is none to be told.

    A repository that was put there as it is has its package one folder deeper, or in ``src``.
    """
    if (folder / INIT).is_file():
        return ""
    for prefix in ("", "src"):
        place = folder / prefix
        found = [
            name for name in _names(place) if name not in _NO_PACKAGE and (place / name / INIT).is_file()
        ]
        if len(found) > 1:
            wanted = re.sub(r"[^a-z0-9]", "_", folder.name.lower())
            found = [
                name for name in found if name.lower() in (wanted, f"hermes_{wanted}", f"{wanted}_hermes")
            ]
        if len(found) == 1:
            return str(Path(prefix, found[0]))
    return None


def sources_of(package: Path) -> Iterator[Path]:
    """The Python files right in the folder *package*, its ``__init__.py`` first."""
    yield package / INIT
    for name in _names(package):
        if name.endswith(".py") and name != INIT:
            yield package / name


def _look(folder: Path, source: str, kind: str | None) -> Iterator[Plugin]:
    """The plugin in *folder*, if there is one, or what is wrong with what should be one."""
    name = folder.name
    try:
        if not os.path.isdir(folder):  # noqa: PTH112 - unlike Path.is_dir it takes a loop of links for no folder
            if os.path.islink(folder):  # noqa: PTH114
                target = os.readlink(folder)  # noqa: PTH115
                if not os.path.exists(folder):  # noqa: PTH110
                    yield _broken(folder, source, kind, f"a broken link to {target}")
            return
        package = package_in(folder)
    except OSError as exc:
        yield _broken(folder, source, kind, f"cannot be read: {exc.strerror or exc}")
        return
    manifest = read(folder)
    if package and manifest.problem and (inner := read(folder / package)).problem == "":
        manifest = inner
    if package is None:
        if not (folder / FILE).is_file():
            return  # data, or something else that is no plugin
        yield _broken(folder, source, kind, f"there is a {FILE} and no {INIT}")
        return
    if not PLAIN_NAME.fullmatch(name):
        yield _broken(folder, source, kind, "its folder's name is no plain name: letters, digits, - _ . only")
        return
    told = (kind, f"it lies in {kind}/") if kind else kind_of(manifest, sources_of(folder / package))
    yield Plugin(
        name,
        told[0],
        source,
        folder,
        package,
        version=manifest.version,
        decided=told[1],
        note=manifest.problem if (folder / FILE).is_file() else "",
    )


def _broken(folder: Path, source: str, kind: str | None, problem: str) -> Plugin:
    return Plugin(folder.name, kind or "general", source, folder, problem=problem)


def _names(place: Path, only: str = "") -> list[str]:
    """What is in *place*, sorted, without what is hidden; nothing where it cannot be listed."""
    if only:
        return [only] if os.path.lexists(place / only) else []
    try:
        names = os.listdir(place)  # noqa: PTH208 - names are all that is needed
    except OSError:
        return []
    return sorted(name for name in names if not name.startswith((".", "__")))
