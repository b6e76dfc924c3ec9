"""``hermes local model …``: which models for finding by meaning there are, and putting one to use."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hermes.plugins.memory.local import models, tiers
from hermes.plugins.memory.local.options import LEXICAL, options_of
from hermes.plugins.memory.local.terminal import confirm, give, note


def listing(args: argparse.Namespace, home: Path) -> int:
    """The models that are known, and those that are installed."""
    there = {found.name: found for found in models.installed(models.folder_of_models(home))}
    known = {known.name: known for known in models.CATALOGUE}
    found: list[dict[str, Any]] = []
    for name in sorted({*there, *known}):
        one = there.get(name) or known[name]
        about = known[name].about if name in known else "a model of your own"
        folder = str(there[name].folder) if name in there else None
        found.append(
            {"name": name, "about": about, "licence": one.licence, "bytes": one.bytes, "folder": folder}
        )
    give(found, lambda: "\n".join(map(_line, found)), as_json=args.json)
    return 0


def install(args: argparse.Namespace, home: Path) -> int:
    """Show what would be installed, ask, and install it; then the tier that is in use."""
    chosen = models.offer(args.model or models.CATALOGUE[0].name)
    if not args.yes:
        note(
            f"{chosen.name}: {chosen.about}\n{_size(chosen.bytes)}, licence: {chosen.licence}, from {chosen.origin}"
        )
    confirm(f"Install {chosen.name}?", yes=args.yes)
    done = models.install(chosen, models.folder_of_models(home))
    tier = tiers.choose(options_of(getattr(args, "hermes_config", {})), home)
    data = {"name": done.name, "folder": str(done.folder), "bytes": done.bytes, "tier": tier.name}
    give(
        data | {"next_step": tier.next_step},
        lambda: f"{done.name} is in {done.folder}; the tier in use is {tier.name}",
        as_json=args.json,
    )
    if tier.name == LEXICAL:
        note(f"to use it: {tier.next_step}")
    return 0


def remove(args: argparse.Namespace, home: Path) -> int:
    """Delete a model; what is stored stays, and is found by its words."""
    confirm(f"Delete the model {args.model} for every profile?", yes=args.yes)
    gone = models.remove(args.model, models.folder_of_models(home))
    give(
        {"name": gone.name, "bytes": gone.bytes},
        lambda: f"{gone.name} is deleted, {_size(gone.bytes)}",
        as_json=args.json,
    )
    return 0


COMMANDS = {"model list": listing, "model install": install, "model remove": remove}


def _line(found: dict[str, Any]) -> str:
    state = f"installed in {found['folder']}" if found["folder"] else "not installed"
    size = _size(found["bytes"])
    return f"{found['name']}  {found['about']}; {size}, licence: {found['licence']}; {state}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
