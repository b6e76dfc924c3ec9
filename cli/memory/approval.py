"""``hermes memory pending|approve|reject``: writes of the model that wait for the person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.memory.mirror import mirror
from hermes.cli.output import ago, emit, note, styled
from hermes.cli.state import current
from hermes.errors import UsageError

if TYPE_CHECKING:
    from hermes.memory.builtin import Change, Decision, Origin, Pending

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Ids as hermes memory pending shows them.")
]
All = Annotated[bool, typer.Option("--all", help="All that wait.")]


def pending(ctx: typer.Context) -> None:
    """List the writes that wait for you, oldest first."""
    state = current(ctx)
    with state.open() as me:
        items = me.builtin_provider().memory.pending()
    emit(
        state,
        [_as_dict(item) for item in items],
        lambda: "\n".join(map(_render, items)) or "nothing waits for you",
    )


def approve(ctx: typer.Context, ids: Ids = None, all_: All = False) -> None:
    """Let waiting writes happen, each for itself; one that cannot be carried out stays and says why."""
    _decide(ctx, ids, all_, approve=True)


def reject(ctx: typer.Context, ids: Ids = None, all_: All = False) -> None:
    """Drop waiting writes."""
    _decide(ctx, ids, all_, approve=False)


def _decide(ctx: typer.Context, ids: list[str] | None, all_: bool, *, approve: bool) -> None:
    if bool(ids) == all_:
        raise UsageError("name the ids, or say --all", next_step="hermes memory pending lists them")
    state = current(ctx)
    chosen = None if all_ else ids
    with state.open() as me:
        me.hold()
        memory = me.builtin_provider().memory

        def tell(change: Change, origin: Origin) -> None:
            mirror(me, [change], origin=origin)

        decisions = memory.approve(chosen, mirror=tell) if approve else memory.reject(chosen)
    data = [{"id": d.id, "ok": d.ok, "message": d.message} for d in decisions]
    emit(state, data, lambda: _decisions(decisions))
    if any(not d.ok for d in decisions):
        note(state, "what could not be done still waits")
        raise typer.Exit(1)


def _decisions(decisions: Sequence[Decision]) -> str:
    lines = [f"{d.id}  {d.message if d.ok else styled(d.message, 'red')}" for d in decisions]
    return "\n".join(lines) or "nothing waits for you"


def _as_dict(item: Pending) -> dict[str, Any]:
    return {
        "id": item.id,
        "target": item.target,
        "operations": [operation.as_dict() for operation in item.operations],
        "origin": item.origin.as_dict(),
        "time": item.time,
        "problem": item.problem,
    }


def _render(item: Pending) -> str:
    head = f"{styled(item.id, 'bold')}  {item.target}, {ago(item.time)}"
    if item.problem:
        return f"{head}\n  {styled(item.problem, 'red')}"
    lines = []
    for op in item.operations:
        old = f" {op.old_text!r}" if op.old_text else ""
        lines.append(f"  {op.action}{old}{': ' if op.content else ''}{op.content}")
    return "\n".join([head, *lines])
