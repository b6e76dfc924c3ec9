"""``hermes memory list|add|replace|remove|undo``: the built-in entries, by the person."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hermes.cli.memory.mirror import mirror
from hermes.cli.output import emit, note, styled
from hermes.cli.state import State, current
from hermes.errors import UsageError

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.memory.builtin import Applied, Change, Entry, Target, Undone

TargetName = Literal["memory", "user"]
TargetOption = Annotated[
    TargetName, typer.Option("--target", "-t", help="MEMORY.md, or USER.md for what concerns the person.")
]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="The text; - reads it from standard input.")]
Old = Annotated[
    str, typer.Argument(metavar="OLD", help="The entry: a part of it that no other has, or its id.")
]


def list_entries(
    ctx: typer.Context,
    target: Annotated[TargetName | None, typer.Option("--target", "-t", help="Only this half.")] = None,
) -> None:
    """List the built-in entries with their ids, those included that are kept from the model."""
    state = current(ctx)
    with state.open() as me:
        memory = me.builtin_provider().memory
        halves = [half for half in memory.enabled.targets if target in (None, half)]
        entries = [entry for half in halves for entry in memory.entries(half)]
        warnings = memory.warnings()
    emit(state, [as_dict(entry) for entry in entries], lambda: render(entries) or "nothing is remembered yet")
    for warning in warnings:
        note(state, f"note: {warning}")


def add(ctx: typer.Context, text: Text, target: TargetOption = "memory") -> None:
    """Remember something yourself. It is on disk when this returns."""
    state = current(ctx)
    content = _text(state, text)
    with _writing(state) as me:
        applied = me.builtin_provider().memory.add(target, content)
        _done(state, me, applied)


def replace(ctx: typer.Context, old: Old, text: Text, target: TargetOption = "memory") -> None:
    """Put a new text in the place of a whole entry; what it said is printed."""
    state = current(ctx)
    content = _text(state, text)
    with _writing(state) as me:
        applied = me.builtin_provider().memory.replace(target, old, content)
        _done(state, me, applied)


def remove(
    ctx: typer.Context,
    old: Old,
    target: TargetOption = "memory",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Turns of session transcripts that hold it too.")
    ] = False,
) -> None:
    """Forget an entry, everywhere in this profile.

    It goes from history, pending writes, backups, the journal and the memory provider too: no way back.
    """
    from hermes.memory.builtin import Change

    state = current(ctx)
    with _writing(state) as me:
        forgotten = me.builtin_provider().memory.remove(target, old)
        # what the entry said before it was changed is forgotten with it
        changes = list(forgotten.applied.changes)
        told = {change.content for change in changes}
        changes += [
            Change("remove", target, text, text, text) for text in forgotten.texts if text not in told
        ]
        undelivered = mirror(me, changes, forget=forgotten.texts)
        for text in forgotten.texts if everywhere else ():
            me.sessions().forget(text)
        _report(state, changes[:1], undelivered, [*forgotten.problems])


def undo(
    ctx: typer.Context,
    session: Annotated[str | None, typer.Option("--session", help="All that this session wrote.")] = None,
    origin: Annotated[str | None, typer.Option("--origin", help="All that person or model wrote.")] = None,
) -> None:
    """Take back the last change of the built-in entries, whoever made it.

    With --session or --origin, everything that came from there; hermes memory list --json says what did.
    """
    state = current(ctx)
    with _writing(state) as me:
        memory = me.builtin_provider().memory
        if session is None and origin is None:
            undone: tuple[Undone, ...] = (memory.undo(),)
        else:
            undone = memory.revert(session_id=session, write_origin=origin).undone
        changes = [change for one in undone for change in one.changes]
        conflicts = [conflict for one in undone for conflict in one.conflicts]
        undelivered = mirror(me, changes)
        _report(state, changes, undelivered, conflicts, nothing="nothing could be taken back")
    if conflicts and not changes:
        raise typer.Exit(1)


def as_dict(entry: Entry) -> dict[str, Any]:
    """An entry as ``--json`` prints it."""
    return {
        "id": entry.id,
        "target": entry.target,
        "text": entry.text,
        "blocked": entry.blocked,
        "time": entry.time,
        "origin": entry.origin.as_dict() if entry.origin else {},
    }


def render(entries: Iterable[Entry]) -> str:
    """Entries as a person reads them, below a heading for each half."""
    lines: list[str] = []
    half: Target | None = None
    for entry in entries:
        if entry.target != half:
            half = entry.target
            lines.append(styled(half, "bold"))
        first, *rest = entry.text.splitlines() or [""]
        lines.append(f"  {styled(entry.id, 'dim')}  {first}")
        lines += [f"            {line}" for line in rest]
        if entry.blocked:
            lines.append(styled(f"            kept from the model: {entry.blocked}", "red"))
    return "\n".join(lines)


def _writing(state: State) -> OpenProfile:
    me = state.open()
    try:
        me.hold()
    except BaseException:
        me.close()
        raise
    return me


def _text(state: State, text: str) -> str:
    if text != "-":
        return text
    if sys.stdin.isatty():
        note(state, "type the text, then Ctrl-D on a line of its own")
    content = sys.stdin.buffer.read()
    try:
        return content.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as exc:
        raise UsageError(
            f"standard input is not UTF-8: {exc}", next_step="convert it, for example with iconv"
        ) from exc


def _done(state: State, me: OpenProfile, applied: Applied) -> None:
    undelivered = mirror(me, applied.changes)
    _report(state, applied.changes, undelivered, [applied.warning] if applied.warning else [])


def _report(
    state: State,
    changes: Sequence[Change],
    undelivered: int,
    problems: Sequence[str],
    *,
    nothing: str = "nothing changed: it was there already",
) -> None:
    data = {
        "changes": [
            {"action": c.action, "target": c.target, "content": c.content, "previous": c.previous_content}
            for c in changes
        ],
        "undelivered": undelivered,
        "problems": list(problems),
    }
    emit(state, data, "" if state.quiet else "\n".join(map(_line, changes)) or nothing)
    if undelivered:
        note(state, f"note: {undelivered} not yet with the provider; it is kept and tried again")
    for problem in problems:
        note(state, f"note: {problem}")


def _line(change: Change) -> str:
    match change.action:
        case "add":
            return f"{change.target}: added"
        case "remove":
            return f"{change.target}: removed: {change.content}"
        case _:
            return f"{change.target}: replaced: {change.previous_content}"
