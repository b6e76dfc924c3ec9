"""Puts the modules of ``served/`` in the way of an import, and takes them out again.

In a worker process, where there is nobody else, they come first. In any other process they come last: a name
that the application can import itself stays the application's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hermes.compat import CONTRACT_VERSION, current
from hermes.errors import ProfileBusy
from hermes.plugin_host.context import Registered
from hermes.plugin_host.host import Host

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

SERVED = Path(__file__).parent / "served"
_OPEN = "plugins"
"""The one package that others may add to: wheels bring ``plugins/memory/<name>/``."""
_DISTRIBUTION = "hermes-agent"


def install(host: Host, registered: Registered | None = None, *, worker: bool = False) -> None:
    """Serve the modules in this process, for the profile of *host*, until ``uninstall``.

    What plugins register by way of them goes into *registered*. *worker*: this process is a plugin's own.
    Raises ProfileBusy where they are served for a profile already.
    """
    if (busy := _installed()) is not None:
        raise ProfileBusy(busy.profile, doing="its plugins are served the host modules in this process")
    finder = _Finder(host.profile_name(), worker=worker)
    current.begin(current.Serving(host, registered or Registered(), worker))
    if worker:
        sys.meta_path.insert(0, finder)
    else:
        sys.meta_path.append(finder)


def uninstall() -> None:
    """Serve them no more; what was imported from here is forgotten. Does nothing where nothing is served."""
    if (finder := _installed()) is None:
        return
    sys.meta_path.remove(finder)
    ours = {name for name, module in list(sys.modules.items()) if "." not in name and _is_served(module)}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        del sys.modules[name]
    current.begin(None)


def names() -> list[str]:
    """Every module that is served, by the name that plugins import it by."""
    files = (file.relative_to(SERVED).with_suffix("") for file in SERVED.rglob("*.py"))
    found = (".".join(part for part in file.parts if part != "__init__") for file in files)
    return sorted(name for name in found if name)


class _Finder:
    """Finds the served modules; *profile* is whom they are served for."""

    def __init__(self, profile: str, *, worker: bool) -> None:
        self.profile = profile
        self._worker = worker
        self._known_path = frozenset(sys.path)
        self._tops = frozenset(path.stem for path in SERVED.iterdir())

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module that is served, None for others.

        Raises ModuleNotFoundError for what a served package does not have.
        """
        top, _, _ = fullname.partition(".")
        if top not in self._tops:  # nearly every import of the process
            return None
        parent, _, _ = fullname.rpartition(".")
        if parent and not _is_served(sys.modules.get(parent)):
            return None
        spec = _spec(fullname)
        if spec is not None:
            return None if not parent and self._worker and self._is_the_plugins(fullname) else spec
        if parent and top != _OPEN:
            raise ModuleNotFoundError(
                f"{fullname} is a module of another host; this one does not serve it", name=fullname
            )
        return None

    def _is_the_plugins(self, name: str) -> bool:
        """Whether the plugin has put a folder on the path that holds a module of that name, no mere folder."""
        added = [entry for entry in sys.path if entry not in self._known_path]
        found = PathFinder.find_spec(name, added) if added else None
        return found is not None and found.origin is not None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """The metadata of the contract, for a plugin that asks which version of its host is installed."""
        if (context.name or "").lower().replace("_", "-") == _DISTRIBUTION:
            yield _contract()


def _spec(fullname: str) -> ModuleSpec | None:
    base = SERVED.joinpath(*fullname.split("."))
    if (init := base / "__init__.py").is_file():
        return spec_from_file_location(fullname, init, submodule_search_locations=_places(fullname, base))
    file = base.with_name(f"{base.name}.py")
    return spec_from_file_location(fullname, file) if file.is_file() else None


def _places(fullname: str, base: Path) -> list[str]:
    """Where the parts of a package lie: ours first, then what wheels add to the open one."""
    if fullname.partition(".")[0] != _OPEN:
        return [str(base)]
    others = (Path(entry, *fullname.split(".")) for entry in sys.path if entry)
    return [str(base), *(str(place) for place in others if place.is_dir())]


def _is_served(module: ModuleType | None) -> bool:
    spec = getattr(module, "__spec__", None)
    if spec is None or spec.origin is None or spec.name.startswith("hermes."):
        return False
    return SERVED in Path(spec.origin).parents


def _installed() -> _Finder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)


def _contract() -> Distribution:
    from importlib.metadata import Distribution

    class Contract(Distribution):
        """What is said of ``hermes-agent``: its name and the version of the contract."""

        def read_text(self, filename: str) -> str | None:
            lines = f"Metadata-Version: 2.1\nName: {_DISTRIBUTION}\nVersion: {CONTRACT_VERSION}\n"
            return lines if filename == "METADATA" else None

        def locate_file(self, path: Any) -> Any:
            return SERVED / path

    return Contract()
