"""Plugins in installed packages, found in the metadata of distributions: entry points, and wheels that put a
folder into ``plugins/<kind>/``.

``importlib.metadata`` is not used to find them: it takes a while to import and reads more than is needed. What
is read here is one small file of each distribution, and the list of files only where such a folder exists.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from hermes.plugin_host.folders import of_kind, package_in, sources_of
from hermes.plugin_host.kinds import kind_of, text_of
from hermes.plugin_host.manifest import Manifest, read
from hermes.plugin_host.plugin import GENERAL, KINDS, MEMORY, PACKAGE, PLAIN_NAME, Plugin

PROVIDERS = "hermes_agent.memory_providers"
GROUPS = (PROVIDERS, "hermes_agent.plugins", "hermes.plugins")
"""The groups of entry points that are read, in this order."""
_REGISTER = re.compile(rb"^(?:async\s+)?def\s+register\b", re.MULTILINE)
_MISTAKEN = re.compile(r"hermes[\w.]*\.memory\w*")
_NAME = re.compile(
    r"(?P<name>.+?)-(?P<version>[^-]+)\.dist-info\Z|(?P<egg>.+?)(?:-(?P<egg_version>[^-]+?))?"
    r"(?:-py[\d.]+)?\.egg-info\Z"
)


@attrs.frozen
class Distribution:
    """An installed distribution: its name and version, where its metadata lies, where its modules do."""

    name: str
    version: str
    info: Path
    site: Path

    def read(self, file: str) -> bytes:
        """One file of its metadata; empty where there is none."""
        try:
            with open(self.info / file, "rb") as handle:  # noqa: PTH123 - once per distribution, and quicker
                return handle.read()
        except OSError:
            return b""


def installed(search_path: Sequence[str] | None = None) -> Iterator[Plugin]:
    """The plugins of the packages on *search_path* (default: of this interpreter)."""
    found = list(distributions(sys.path if search_path is None else search_path))
    points = [
        (dist, points)
        for dist in found
        if b"hermes" in (text := dist.read("entry_points.txt"))
        for points in (entry_points(text.decode("utf-8", "replace")),)
    ]
    taken: set[tuple[str, str]] = set()
    providing: set[str] = set()
    for group in GROUPS:
        for dist, groups in points:
            for name, value in sorted(groups.get(group, {}).items()):
                if (dist.name, name) not in taken:  # the same plugin told twice is one plugin
                    taken.add((dist.name, name))
                    plugin = _of_entry(dist, group, name, value)
                    providing.update([dist.name] if plugin.kind == MEMORY else [])
                    yield plugin
    yield from (plugin for plugin in _overlays(found) if (plugin.distribution, plugin.name) not in taken)
    for dist, groups in points:
        if dist.name not in providing:
            yield from _mistaken(dist, groups)


def distributions(search_path: Sequence[str]) -> Iterator[Distribution]:
    """Every distribution once, the first one on the path where there are several of one name."""
    seen: set[str] = set()
    for folder in dict.fromkeys(filter(None, search_path)):
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names are all that is needed
        except OSError:
            continue
        for entry in sorted(name for name in names if name.endswith((".dist-info", ".egg-info"))):
            if match := _NAME.match(entry):
                name = (match["name"] or match["egg"]).replace("_", "-")
                if (key := name.lower().replace(".", "-")) not in seen:
                    seen.add(key)
                    version = match["version"] or match["egg_version"] or ""
                    yield Distribution(name, version, Path(folder, entry), Path(folder))


def entry_points(text: str) -> dict[str, dict[str, str]]:
    """What ``entry_points.txt`` says: group to name to value."""
    groups: dict[str, dict[str, str]] = {}
    group: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = groups.setdefault(line[1:-1].strip(), {})
        elif line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            group.setdefault(name.strip(), re.sub(r"\s|\[.*", "", value))
    return groups


def _of_entry(dist: Distribution, group: str, name: str, value: str) -> Plugin:
    file = _source_of(value.partition(":")[0], dist.site)
    kind, decided = MEMORY, f"entry point group {group}"
    if group != PROVIDERS:
        kind, decided = GENERAL, "its source cannot be found without importing it"
        if file is not None:
            folder = _folder_of(file, value)
            manifest = read(folder) if folder else Manifest()
            kind, decided = kind_of(manifest, _sources(file, folder))
    return Plugin(
        name,
        kind,
        PACKAGE,
        _folder_of(file, value),
        entry=value,
        site=dist.site,
        distribution=dist.name,
        version=dist.version,
        decided=decided,
        problem="" if PLAIN_NAME.fullmatch(name) else "its entry point's name is no plain name",
    )


def _folder_of(file: Path | None, entry: str) -> Path | None:
    """The folder of the package that *file* is in; a module that stands alone has none to itself."""
    alone = file is not None and file.name != "__init__.py" and "." not in entry.partition(":")[0]
    return None if file is None or alone else file.parent


def _sources(file: Path, folder: Path | None) -> Iterator[Path]:
    """The file that an entry point names; those beside it only where that takes its ``register`` from them."""
    yield file
    if folder is not None and not _REGISTER.search(text_of(file)):
        yield from (path for path in sources_of(folder) if path != file)


def _source_of(module: str, site: Path) -> Path | None:
    """The file of *module*, found without importing anything; an editable install says where its code lies."""
    top, *rest = module.split(".")
    if (file := _file(site / top, rest)) is not None:
        return file
    import importlib.util

    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    for place in spec.submodule_search_locations or ():
        if (file := _file(Path(place), rest)) is not None:
            return file
    return Path(spec.origin) if not rest and spec.origin and spec.origin.endswith(".py") else None


def _file(package: Path, below: Sequence[str]) -> Path | None:
    base = os.path.join(package, *below)  # noqa: PTH118 - several times per plugin, and quicker
    for file in (f"{base}/__init__.py", f"{base}.py"):
        if os.path.isfile(file):  # noqa: PTH113
            return Path(file)
    return None


def _mistaken(dist: Distribution, groups: dict[str, dict[str, str]]) -> Iterator[Plugin]:
    """Entry points of a group that no host reads, although they are meant for one."""
    for group, points in groups.items():
        if _MISTAKEN.fullmatch(group):
            for name, value in sorted(points.items()):
                yield Plugin(
                    name,
                    MEMORY,
                    PACKAGE,
                    entry=value,
                    distribution=dist.name,
                    version=dist.version,
                    decided=f"entry point group {group}",
                    problem=f"its entry point stands in the group {group}, which is not read; its author must "
                    f"name it {PROVIDERS}",
                )


def _overlays(found: Sequence[Distribution]) -> Iterator[Plugin]:
    """Folders in ``plugins/<kind>/`` beside the modules of packages; what no package owns is not a plugin."""
    places = {(dist.site, kind) for dist in found for kind in KINDS}
    for site, kind in sorted(place for place in places if (place[0] / "plugins" / place[1]).is_dir()):
        owner = re.compile(rb'^"?plugins/%s/([^/,"\r\n]+)/' % kind.encode(), re.MULTILINE)
        owners = {
            match.decode("utf-8", "replace"): dist
            for dist in found
            if dist.site == site
            for match in set(owner.findall(dist.read("RECORD")))
        }
        for plugin in of_kind(site / "plugins" / kind, PACKAGE, kind):
            if plugin.name in owners and package_in(site / "plugins" / kind / plugin.name) is not None:
                dist = owners[plugin.name]
                yield attrs.evolve(plugin, site=site, distribution=dist.name, version=dist.version)
