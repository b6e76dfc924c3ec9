"""What a provider needs beside itself: found missing by the metadata of what is installed, never by importing."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import attrs

CHECK_SECONDS = 15.0
"""How long the check of a program may take."""


@attrs.frozen
class Missing:
    """A requirement that is not met, and why."""

    requirement: str
    reason: str


@attrs.frozen
class Program:
    """Something outside Python that a provider needs: what it is called, and how to get it."""

    name: str
    install: str = ""
    check: str = ""


def missing(requirements: Iterable[Any]) -> tuple[Missing, ...]:
    """Those of *requirements* (``name[extra]>=1; marker``) that the environment of this process does not meet."""
    reasons = {str(text): _unmet(str(text), frozenset()) for text in requirements}
    return tuple(Missing(text, reason) for text, reason in reasons.items() if reason)


def _unmet(text: str, above: frozenset[str], extras: Iterable[str] = ("",)) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        wanted = Requirement(text)
    except InvalidRequirement as exc:
        return f"it is no requirement ({str(exc).splitlines()[0]})"
    if wanted.marker is not None and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras):
        return ""
    try:
        installed = metadata.distribution(wanted.name)
    except metadata.PackageNotFoundError:
        return "it is not installed"
    if not wanted.specifier.contains(installed.version, prereleases=True):
        return f"{installed.version} is installed"
    if wanted.extras and wanted.name not in above:
        for below in installed.requires or ():
            if "extra" in below and (reason := _unmet(below, above | {wanted.name}, wanted.extras)):
                return f"{below.partition(';')[0].strip()}: {reason}"
    return ""


def installing(requirements: Sequence[str]) -> list[str] | None:
    """The command that installs *requirements* into the environment of this process; None where none can.

    uv where there is one, else pip; neither into an environment that this process may not write.
    """
    if not os.access(sysconfig.get_paths()["purelib"], os.W_OK):
        return None
    return _installer(requirements)


def by_hand(requirements: Sequence[str]) -> str:
    """The command for a person to run, where ``installing`` has none."""
    fallback = [sys.executable, "-m", "pip", "install", *requirements]
    return shlex.join(_installer(requirements) or fallback)


def _installer(requirements: Sequence[str]) -> list[str] | None:
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable, *requirements]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", *requirements]
    return None


def run(command: Sequence[str] | str) -> bool:
    """Run *command* with its output on standard error; True if it ended well. A text goes to the shell."""
    shell = isinstance(command, str)
    done = subprocess.run(command, shell=shell, stdout=sys.stderr, check=False)
    importlib.invalidate_caches()
    return done.returncode == 0


def programs(said: Any) -> tuple[Program, ...]:
    """The ``external_dependencies`` of a manifest; what is no mapping with a name is left out."""
    items = said if isinstance(said, list | tuple) else ()
    return tuple(
        Program(str(item["name"]), str(item.get("install") or ""), str(item.get("check") or ""))
        for item in items
        if isinstance(item, Mapping) and item.get("name")
    )


def is_there(program: Program) -> bool:
    """Whether *program* answers: its check ends well, or, where it has none, it is found on PATH."""
    words = shlex.split(program.check)
    if not words:
        return shutil.which(program.name) is not None
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
