"""Bringing plugins in and taking them out: folders into a profile, packages into the environment of this process."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import attrs

from hermes.errors import HermesError, StoreUnavailable, Unavailable, UsageError
from hermes.files import describe_failure, private_dir
from hermes.plugin_host.folders import package_in
from hermes.plugin_host.manifest import Manifest, read
from hermes.plugin_host.plugin import KINDS, PLAIN_NAME
from hermes.setup import dependencies

REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,\s-]+\])?\s*([=<>!~]=?[\w.*,<>=!~\s-]+)?", re.ASCII)
"""A package by its name, perhaps with extras and versions."""
_LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", "*.pyc", ".venv", "venv", "node_modules", ".tox")
_UV_LINE = re.compile(r"^ ([+~-]) (\S+)", re.MULTILINE)
_LONGEST = 600


@attrs.frozen
class Folder:
    """A folder that holds a plugin, and the name that it gets."""

    path: Path
    name: str
    manifest: Manifest

    @classmethod
    def of(cls, path: Path) -> Folder:
        """The plugin in *path*. Raises ``UsageError`` where there is none, or none with a plain name."""
        path = path.resolve()
        package = package_in(path)
        if package is None:
            raise UsageError(
                f"{path} holds no plugin: no __init__.py in it, nor in the one folder below it",
                next_step="name the folder that holds plugin.yaml and __init__.py",
            )
        manifest = read(path)
        if manifest.problem and package:
            manifest = read(path / package)
        name = manifest.name if PLAIN_NAME.fullmatch(manifest.name) else path.name
        if not PLAIN_NAME.fullmatch(name) or name in KINDS:
            raise UsageError(
                f"{name!r} is no name for a plugin", next_step="give its plugin.yaml a plain name"
            )
        return cls(path, name, manifest)

    def copy_to(self, plugins: Path) -> Path:
        """Copy it into the folder *plugins* under its name, whole or not at all; where it is now.

        Raises ``UsageError`` where something is there already, ``StoreUnavailable`` where it cannot be written.
        """
        target = plugins / self.name
        if target.exists() or target.is_symlink():
            raise UsageError(
                f"{target} exists already",
                next_step=f"hermes plugins remove {self.name}, then install it again",
            )
        private_dir(plugins)
        half = plugins / f".{self.name}-{uuid.uuid4().hex[:8]}"
        try:
            shutil.copytree(self.path, half, symlinks=True, ignore=_LEFT_OUT)
            half.rename(target)
        except (OSError, shutil.Error) as exc:
            shutil.rmtree(half, ignore_errors=True)
            raise StoreUnavailable(
                plugins, f"{self.name} cannot be copied there: {_reason(plugins, exc)}"
            ) from exc
        return target


def remove(folder: Path) -> None:
    """Delete the plugin in *folder*; of a link only the link. Raises ``StoreUnavailable``."""
    try:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except OSError as exc:
        raise StoreUnavailable(folder, f"cannot be deleted: {describe_failure(folder, exc)}") from exc


def planned(requirements: Sequence[str]) -> tuple[str, ...]:
    """What installing *requirements* would bring, as ``name version``, found by asking the installer.

    Raises ``Unavailable`` where nothing can be installed here, ``HermesError`` where the installer says no.
    """
    command = _command(requirements)
    if not requirements:
        return ()
    place = command.index("install") + 1
    if Path(command[0]).name.startswith("uv"):
        done = _asked([*command[:place], "--dry-run", *command[place:]], requirements)
        return tuple(name.replace("==", " ") for sign, name in _UV_LINE.findall(done.stderr) if sign != "-")
    done = _asked([*command[:place], "--dry-run", "--quiet", "--report", "-", *command[place:]], requirements)
    found = (item["metadata"] for item in json.loads(done.stdout)["install"])
    return tuple(f"{item['name']} {item['version']}" for item in found)


def install(requirements: Sequence[str]) -> None:
    """Install *requirements*. Raises what ``planned`` raises."""
    if requirements and not dependencies.run(_command(requirements)):
        raise HermesError(
            f"{', '.join(requirements)} could not be installed; the installer says why above",
            next_step=f"by hand: {dependencies.by_hand(requirements)}",
        )


def uninstall(distribution: str) -> None:
    """Uninstall the package *distribution*; what it needed stays. Raises what ``install`` raises."""
    command = _command([distribution])
    place = command.index("install")
    sure = [] if Path(command[0]).name.startswith("uv") else ["-y"]
    undo = [*command[:place], "uninstall", *sure, *command[place + 1 :]]
    if not dependencies.run(undo):
        raise HermesError(
            f"{distribution} could not be uninstalled; the installer says why above",
            next_step=f"by hand: {shlex.join(undo)}",
        )


def _command(requirements: Sequence[str]) -> list[str]:
    command = dependencies.installing(requirements)
    if command is None:
        raise Unavailable(
            f"nothing can be installed into {sys.prefix}: it cannot be written, or has neither uv nor pip",
            next_step=f"by hand: {dependencies.by_hand(requirements)}",
        )
    return command


def _asked(command: Sequence[str], requirements: Sequence[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-_LONGEST:]
        raise HermesError(
            f"{', '.join(requirements)} cannot be installed: {said}",
            next_step=f"by hand: {dependencies.by_hand(requirements)}",
        )
    return done


def _reason(plugins: Path, exc: Exception) -> str:
    if isinstance(exc, shutil.Error):
        return "; ".join(str(reason) for _, _, reason in exc.args[0][:3])
    return describe_failure(plugins, exc) if isinstance(exc, OSError) else str(exc)
