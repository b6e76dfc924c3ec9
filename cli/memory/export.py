"""``hermes memory export``: everything that is remembered, so that nobody is locked in."""

from __future__ import annotations

import json
from typing import Any

import typer

from hermes.cli.memory.mirror import inspect
from hermes.cli.output import note, write
from hermes.cli.state import current


def export(ctx: typer.Context) -> None:
    """Print everything that is remembered as JSON Lines: built-in entries, then what the provider stores.

    Each line has ``provider`` and what that one gives out.
    """
    state = current(ctx)
    with state.open() as me:
        for record in me.builtin_provider().export_records() or ():
            _line("builtin", record)
        provider = me.memory_provider()
        if provider is None:
            return
        records = inspect(me).export_records()
        if records is None:
            note(state, f"note: {provider.name} keeps its own data and cannot export it")
        for record in records or ():
            _line(provider.name, record)


def _line(provider: str, record: dict[str, Any]) -> None:
    write(json.dumps({"provider": provider, **record}, ensure_ascii=False, default=str))
