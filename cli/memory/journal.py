"""``hermes memory journal``: what is still owed to the memory provider."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hermes.cli.lazy import lazy_app
from hermes.cli.memory.mirror import start
from hermes.cli.output import ago, emit, note, styled, table
from hermes.cli.state import State, confirm, current
from hermes.errors import NotFound, ProviderUnavailable, Unavailable, UsageError

if TYPE_CHECKING:
    from hermes.memory.journal import JournalStats, Record

app = lazy_app({}, "What is still owed to the memory provider.")

StateName = Literal["pending", "handed_over", "dead"]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="[NUMBER]...", help="Numbers as hermes memory journal list has.")
]
All = Annotated[bool, typer.Option("--all", help="All of them.")]


SHORT_WAIT, LONG_WAIT = 30.0, 600.0
"""Seconds that ``flush`` waits for the provider."""


@app.command()
def status(ctx: typer.Context) -> None:
    """Show how much waits, since when, and how delivery goes. Starts no delivery."""
    from hermes.memory.journal import peek

    state = current(ctx)
    with state.open() as me:
        path, max_size = me.paths().journal, me.settings().journal.max_size
    with peek(path, max_size=max_size) as view:
        stats = view.stats() if view is not None else None
    if stats is None:
        emit(state, {"undelivered": 0, "exists": False}, "nothing was ever owed to a provider")
        return
    emit(state, {"exists": True, "path": str(path), **_figures(stats)}, lambda: _render(stats))


@app.command("list")
def list_records(
    ctx: typer.Context,
    which: Annotated[StateName | None, typer.Option("--state", help="Only these.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Only of this session.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at the most.")] = 50,
) -> None:
    """List what waits, what was handed over and not confirmed, and what is set aside; oldest first."""
    state = current(ctx)
    found = _look(state, which=which, session=session, limit=limit)
    emit(state, [_as_dict(r) for r in found], lambda: "\n".join(map(_line, found)) or "the journal is empty")


@app.command()
def show(ctx: typer.Context, number: Annotated[int, typer.Argument(metavar="NUMBER")]) -> None:
    """Show one record whole, as the provider will get it."""
    import json

    from hermes.memory.journal import peek

    state = current(ctx)
    with peek(state.profile_ref().paths.journal) as view:
        record = view.get(number) if view is not None else None
    if record is None:
        raise NotFound(f"there is no record {number}", next_step="hermes memory journal list")
    data = {**_as_dict(record), "payload": dict(record.payload)}
    payload = json.dumps(data["payload"], ensure_ascii=False, indent=2)
    emit(state, data, lambda: f"{_line(record)}\n{payload}")


@app.command()
def retry(ctx: typer.Context, numbers: Numbers = None, all_: All = False) -> None:
    """Offer what was set aside to the provider once more."""
    state = current(ctx)
    chosen = _chosen(numbers, all_)
    with state.open() as me:
        me.hold()
        count = me.journal().retry(chosen)
    emit(state, {"retried": count}, f"{count} will be tried again: hermes memory journal flush")


@app.command()
def redeliver(ctx: typer.Context, numbers: Numbers = None, all_: All = False) -> None:
    """Hand over again what a provider accepted and never confirmed. It may then have it twice."""
    state = current(ctx)
    chosen = _chosen(numbers, all_)
    with state.open() as me:
        me.hold()
        count = me.journal().redeliver(chosen)
    emit(state, {"redelivered": count}, f"{count} will be handed over again: hermes memory journal flush")


@app.command()
def drop(
    ctx: typer.Context,
    numbers: Annotated[list[int], typer.Argument(metavar="NUMBER...")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete records for good: the provider will never get them."""
    state = current(ctx)
    which = ", ".join(map(str, numbers))
    with state.open() as me:
        confirm(f"This deletes {which} from the journal; the provider will never get it. Go on?", yes=yes)
        me.hold()
        count = me.journal().drop(numbers)
    if not count:
        raise NotFound(f"there is no record {which}", next_step="hermes memory journal list")
    emit(state, {"dropped": count}, f"{count} dropped")


@app.command()
def flush(
    ctx: typer.Context,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until everything is handed over, ten minutes at the most.")
    ] = False,
) -> None:
    """Hand over what waits, now. Exits 4 if something is left after half a minute."""
    state = current(ctx)
    with state.open() as me:
        if me.memory_provider() is None:
            raise ProviderUnavailable(
                "none", "no provider is chosen", next_step="hermes config set memory.provider local"
            )
        manager = start(me)
        before = me.journal().stats().undelivered
        manager.flush_pending(LONG_WAIT if wait else SHORT_WAIT)
        stats = me.journal().stats()
    data = {"before": before, "undelivered": stats.undelivered, "dead": stats.dead}
    emit(state, data, f"{max(before - stats.undelivered, 0)} handed over, {stats.undelivered} left")
    if stats.undelivered:
        errors = [h.last_error for h in stats.health.values() if h.last_error]
        reason = f": {errors[0]}" if errors else ""
        raise Unavailable(f"{stats.undelivered} are not with the provider{reason}", next_step="hermes doctor")
    if stats.dead:
        note(state, f"note: {stats.dead} are set aside: hermes memory journal list --state dead")


def _look(state: State, *, which: StateName | None, session: str | None, limit: int) -> list[Record]:
    from hermes.memory.journal import State as RecordState
    from hermes.memory.journal import peek

    with peek(state.profile_ref().paths.journal) as view:
        if view is None:
            return []
        return view.records(state=RecordState(which) if which else None, session_id=session, limit=limit)


def _chosen(numbers: list[int] | None, all_: bool) -> list[int] | None:
    if bool(numbers) == all_:
        raise UsageError("name the numbers, or say --all", next_step="hermes memory journal list")
    return None if all_ else numbers


def _figures(stats: JournalStats) -> dict[str, Any]:
    import attrs

    data = attrs.asdict(stats, recurse=False)
    return data | {
        "moved_aside": [str(path) for path in stats.moved_aside],
        "undelivered_by_provider": dict(stats.undelivered_by_provider),
        "health": {name: attrs.asdict(health) for name, health in stats.health.items()},
        "hooks": {
            name: {hook: calls.as_dict() for hook, calls in hooks.items()}
            for name, hooks in stats.hooks.items()
        },
    }


def _render(stats: JournalStats) -> str:
    rows = [
        (
            "Undelivered",
            f"{stats.undelivered}, the oldest {ago(stats.oldest)}" if stats.undelivered else "nothing",
        ),
        ("Handed over", f"{stats.handed_over}, not confirmed" if stats.handed_over else "nothing"),
        ("Set aside", str(stats.dead) if stats.dead else "nothing"),
        ("Size", f"{stats.size:,} bytes"),
    ]
    for name, health in stats.health.items():
        went = f"{health.successes} delivered, the last {ago(health.last_success)}"
        failing = f"; failing since {health.failing} attempts: {health.last_error}" if health.failing else ""
        rows.append((name, went + (styled(failing, "red") if failing else "")))
    if stats.over_size:
        rows.append(("", styled("larger than journal.max_size", "yellow")))
    if stats.mode == "rollback":
        rows.append(("Kept with", "a rollback journal: the file system takes no write-ahead log"))
    rows += [("Damaged", styled(f"kept as {path}", "yellow")) for path in stats.moved_aside]
    return table(rows)


def _as_dict(record: Record) -> dict[str, Any]:
    return {
        "number": record.seq,
        "kind": str(record.kind),
        "provider": record.provider,
        "session_id": record.session_id,
        "state": str(record.state),
        "time": record.time,
        "attempts": record.attempts,
        "error": record.error,
        "key": record.key,
    }


def _line(record: Record) -> str:
    state = styled(str(record.state), "red") if record.state == "dead" else str(record.state)
    failed = f", failed {record.attempts} times: {record.error}" if record.attempts else ""
    about = _about(record)
    return (
        f"{record.seq:>6}  {record.kind} for {record.provider}, session {record.session_id}, "
        f"{ago(record.time)}, {state}{failed}{about}"
    )


def _about(record: Record) -> str:
    texts: Iterable[Any] = (record.payload.get(name) for name in ("user", "content", "task"))
    text = next((" ".join(t.split()) for t in texts if isinstance(t, str) and t.strip()), "")
    return f"\n        {text[:69] + '…' if len(text) > 70 else text}" if text else ""
