"""``hermes memory search|recall``: what is found, and what a model would be given."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.memory.mirror import SESSION, inspect
from hermes.cli.output import ago, emit, note, styled
from hermes.cli.state import current

if TYPE_CHECKING:
    from collections.abc import Iterable

Query = Annotated[str, typer.Argument(metavar="QUERY", help="Words, or a question.")]


def search(
    ctx: typer.Context,
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at the most.")] = 10,
) -> None:
    """Search everything that is remembered: the built-in entries, then what the provider stores."""
    state = current(ctx)
    with state.open() as me:
        found = [
            {"provider": "builtin", **r}
            for r in me.builtin_provider().search_records(query, limit=limit) or ()
        ]
        provider = me.memory_provider()
        if provider is not None:
            manager = inspect(me)
            records = manager.search_records(query, limit=limit)
            if records is None:
                note(
                    state,
                    f"note: {provider.name} cannot be searched; hermes memory recall asks it as a model would",
                )
            found += [{"provider": provider.name, **record} for record in records or ()]
    emit(state, found, lambda: _render(found) or "nothing was found")


def recall(ctx: typer.Context, query: Query) -> None:
    """Print exactly what a model would be given for a question, and how long it took."""
    from hermes.memory.manager import build_memory_context_block

    state = current(ctx)
    with state.open() as me:
        manager = inspect(me)
        system = manager.build_system_prompt()
        began = time.perf_counter()
        recalled = manager.prefetch_all(query, session_id=SESSION)
        took = time.perf_counter() - began
        block = build_memory_context_block(recalled)
        what = manager.describe_recall()
    data = {"system_prompt": system, "recalled": block, "seconds": took, "recall": what}
    emit(
        state, data, "\n\n".join(part for part in (system, block) if part) or "a model would be given nothing"
    )
    note(state, styled(f"recall took {took * 1000:.1f} ms{f'; {what}' if what else ''}", "dim"))


def _render(found: Iterable[dict[str, Any]]) -> str:
    lines = []
    for record in found:
        place = record["provider"] + (f", {record['session_id']}" if record.get("session_id") else "")
        when = f", {ago(record['time'])}" if record.get("time") else ""
        lines.append(f"{styled(str(record.get('id', '')), 'dim')}  {styled(place + when, 'dim')}")
        lines += [f"  {line}" for line in str(record.get("text", "")).splitlines()]
    return "\n".join(lines)
