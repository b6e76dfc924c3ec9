"""What a plugin says of itself once it is loaded, and what its README says leaves the device."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs

from hermes.memory.coroutines import Coroutines
from hermes.memory.lanes import LimitSet, describe
from hermes.memory.schemas import normalize_tool_schema
from hermes.memory.seat import Seat
from hermes.plugin_host.context import FIRED, Registered

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*\Z")
_LEAVES = re.compile(
    r"leaves? (?:the|your|this) (?:device|machine|computer)|sent off|off[- ]device|what is sent"
    r"|发送到设备外|离开(?:本|你的|您的)?(?:设备|机器)",
    re.IGNORECASE,
)
_KEYS = ("leaves_device", "data_sent", "data_leaves_device")


@attrs.frozen
class Look:
    """A loaded provider, asked without being started."""

    own_name: str = ""
    """What the provider calls itself, where that is not the plugin's name."""
    tools: tuple[tuple[str, str], ...] = ()
    """Name and description."""
    fields: tuple[dict[str, Any], ...] = ()
    """What its setup asks for."""
    backup_paths: tuple[str, ...] = ()
    """Where it keeps state outside the profile."""
    hooks: tuple[str, ...] = ()
    """Hooks of plugins that are fired."""
    unused: tuple[str, ...] = ()
    """What it registered that this host has no use for."""
    problems: tuple[str, ...] = ()
    """What it raised when it was asked."""


def look(provider: Any, plugin: str, registered: Registered, limits: LimitSet) -> Look:
    """Ask *provider* everything that a person may want to know of it; each call is limited and contained."""
    loop = Coroutines("hermes-look")
    seat = Seat(provider, plugin, limits, loop)
    problems: list[str] = [registered.problem] if registered.problem else []

    def ask(member: str) -> list[Any]:
        try:
            answer = seat.ask(member, within=limits.hook)
        except Exception as exc:  # noqa: BLE001 - whatever it raises is what is shown
            problems.append(f"{member}: {describe(exc)}")
            return []
        return list(answer) if isinstance(answer, list | tuple) else []

    try:
        own_name = _named(provider, problems)
        return Look(
            own_name=own_name if own_name != plugin else "",
            tools=tuple(_tool(schema) for schema in ask("get_tool_schemas")),
            fields=tuple(dict(field) for field in ask("get_config_schema") if isinstance(field, dict)),
            backup_paths=tuple(map(str, ask("backup_paths"))),
            hooks=tuple(sorted(FIRED.intersection(registered.hooks))),
            unused=tuple(registered.unused()),
            problems=tuple(problems),
        )
    finally:
        for lane in (seat.turn, seat.delivery):
            lane.close()
        loop.close(limits.hook)


def leaves_device(folder: Path | None, manifest: dict[str, Any]) -> str:
    """Which parts of a turn leave the device, as *manifest* or the README in *folder* says; empty if none does.

    Of the README it is the section whose heading speaks of it, or else the paragraphs that do.
    """
    for key in _KEYS:
        if (said := manifest.get(key)) not in (None, "", []):
            return ", ".join(map(str, said)) if isinstance(said, list) else str(said)
    return _section(_readme(folder)) if folder else ""


def _named(provider: Any, problems: list[str]) -> str:
    try:
        return str(provider.name)
    except Exception as exc:  # noqa: BLE001 - a property of a foreign class may raise anything
        problems.append(f"name: {describe(exc)}")
        return ""


def _tool(schema: Any) -> tuple[str, str]:
    known = normalize_tool_schema(schema) or {}
    return str(known.get("name", "")), " ".join(str(known.get("description", "")).split())


def _readme(folder: Path) -> str:
    for name in ("README.md", "README.rst", "README.txt", "README"):
        try:
            return (folder / name).read_text("utf-8-sig", errors="replace")
        except OSError:
            continue  # the next name
    return ""


def _section(text: str) -> str:
    lines = text.splitlines()
    depth, taken = 0, []
    for line in lines:
        heading = _HEADING.match(line)
        if heading and depth and len(heading[1]) <= depth:
            break
        if depth:
            taken.append(line)
        elif heading and _LEAVES.search(heading[2]):
            depth = len(heading[1])
    if any(line.strip() for line in taken):
        return "\n".join(taken).strip()
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(
        part.strip() for part in paragraphs if _LEAVES.search(part) and not _HEADING.match(part)
    )
