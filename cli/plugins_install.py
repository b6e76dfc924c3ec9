"""``hermes plugins install|remove``: nothing is installed or deleted before the person has seen what and agreed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.output import emit, note
from hermes.cli.plugins_list import Chosen, chosen, facts
from hermes.cli.plugins_show import Name, OfKind, installed
from hermes.cli.state import State, confirm, current
from hermes.errors import HermesError, UsageError

if TYPE_CHECKING:
    from hermes.plugin_host import Plugin
    from hermes.plugin_host.installing import Folder

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def install(
    ctx: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="./FOLDER, FILE.whl, or the name of a package.", show_default=False
        ),
    ],
    yes: Yes = False,
) -> None:
    """Install a plugin: a folder, a wheel, or a package by its name.

    A folder is copied into the profile. A wheel or a package goes into the environment that hermes runs in,
    and so does what the plugin needs; all of it is listed first. A plugin runs with your rights.
    """
    state = current(ctx)
    if _is_path(what) and not what.endswith(".whl"):
        _install_folder(state, Path(what).expanduser(), yes=yes)
    else:
        _install_package(state, what, yes=yes)


def remove(ctx: typer.Context, name: Name, kind: OfKind = None, yes: Yes = False) -> None:
    """Remove a plugin; what it stored stays."""
    from hermes.plugin_host import installing
    from hermes.plugin_host.failures import Failures

    state = current(ctx)
    said = chosen(state)
    plugin = installed(_catalog(said), name, kind)
    _refuse_to_remove(plugin, said)
    if plugin.distribution:
        confirm(f"This uninstalls the package {plugin.distribution} {plugin.version}. Go on?", yes=yes)
        installing.uninstall(plugin.distribution)
    else:
        assert plugin.path is not None
        confirm(f"This deletes {plugin.path}. Go on?", yes=yes)
        installing.remove(plugin.path)
    Failures(said.profile.paths.logs / "plugins.json").forget(name)
    emit(state, {"removed": name, "where": plugin.where}, f"{name} is removed: {plugin.where}")
    for loser in plugin.shadowed:
        note(state, f"hermes: {name} now is {loser}")


def _is_path(what: str) -> bool:
    return what.startswith((".", "~")) or os.sep in what or "/" in what or what.endswith(".whl")


def _catalog(said: Chosen) -> Any:
    from hermes.plugin_host.catalog import Catalog

    return Catalog(said.profile.paths, said.disabled)


def _install_folder(state: State, path: Path, *, yes: bool) -> None:
    from hermes.plugin_host import installing
    from hermes.plugin_host.installing import Folder
    from hermes.setup import dependencies

    folder = Folder.of(path)
    said = chosen(state)
    plugins = said.profile.paths.plugins
    needs = [item.requirement for item in dependencies.missing(folder.manifest.names("pip_dependencies"))]
    packages = installing.planned(needs)
    confirm(_question(folder, plugins, packages), yes=yes)
    installing.install(needs)
    target = folder.copy_to(plugins)
    _report(state, said, [p for p in _catalog(said).all if p.path == target], packages)


def _question(folder: Folder, plugins: Path, packages: Sequence[str]) -> str:
    version = f" {folder.manifest.version}" if folder.manifest.version else ""
    also = f", and installs {', '.join(packages)}" if packages else ""
    copy = f"This copies {folder.name}{version} from {folder.path} into {plugins}{also}."
    return f"{copy} A plugin runs with your rights. Go on?"


def _install_package(state: State, what: str, *, yes: bool) -> None:
    from hermes.plugin_host import installing

    if what.endswith(".whl"):
        if not Path(what).expanduser().is_file():
            raise UsageError(f"there is no file {what}", next_step="name a wheel that exists")
        what = str(Path(what).expanduser().resolve())
    elif not installing.REQUIREMENT.fullmatch(what):
        raise UsageError(
            f"{what!r} is neither a folder, a wheel, nor the name of a package",
            next_step="a folder is written with a slash: ./my-plugin",
        )
    elif Path(what).is_dir():
        note(state, f"hermes: there is a folder {what} here too: hermes plugins install ./{what}")
    said = chosen(state)
    before = set(_catalog(said).all)
    packages = installing.planned([what])
    if not packages:
        _report(state, said, [], packages)
        return
    confirm(f"This installs {', '.join(packages)}. A plugin runs with your rights. Go on?", yes=yes)
    installing.install([what])
    _report(state, said, [plugin for plugin in _catalog(said).all if plugin not in before], packages)


def _report(state: State, said: Chosen, found: Sequence[Plugin], packages: Sequence[str]) -> None:
    data = {"installed": list(packages), "plugins": [facts(plugin, said, {}) for plugin in found]}
    emit(state, data, lambda: _report_text(found, packages))


def _report_text(found: Sequence[Plugin], packages: Sequence[str]) -> str:
    lines = [f"installed {', '.join(packages)}"] if packages else []
    for plugin in found:
        lines.append(f"{plugin.name} is there: {plugin.where}")
        if plugin.problem:
            lines.append(f"  and cannot be used: {plugin.problem}")
        elif plugin.kind == "memory":
            lines.append(f"  hermes memory setup {plugin.name}")
        elif plugin.kind == "context_engine":
            lines.append(f"  hermes plugins select --context {plugin.name}")
    if not found:
        lines.append(
            "no new plugin was found in it; if it has an installer of its own, run that, then hermes plugins list"
            if packages
            else "it is installed already: hermes plugins list"
        )
    return "\n".join(lines)


def _refuse_to_remove(plugin: Plugin, said: Chosen) -> None:
    if plugin.source == "bundled":
        raise UsageError(
            f"{plugin.name} is part of hermes and cannot be removed",
            next_step=f"hermes plugins disable {plugin.name}",
        )
    if plugin.source == "root" and said.profile.home != said.profile.root:
        raise UsageError(
            f"{plugin.name} belongs to every profile of {said.profile.root}",
            next_step=f"hermes -p default plugins remove {plugin.name}",
        )
    if said.active.get(plugin.kind) == plugin.name:
        raise HermesError(
            f"{plugin.name} is in use in profile {said.profile.name!r}",
            next_step="choose another first: hermes plugins select",
        )
