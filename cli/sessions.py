"""``hermes sessions``: the transcripts of conversations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.lazy import lazy_app
from hermes.cli.output import ago, emit, note, styled, table, write
from hermes.cli.state import confirm, current
from hermes.memory.turns import flatten_content

if TYPE_CHECKING:
    from hermes.sessions import Session, StoredMessage

app = lazy_app({}, "Transcripts: list, search, show, rename, delete, export.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a session, or how it begins.")]


@app.command("list")
def listing(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at the most.")] = 20,
) -> None:
    """List the sessions, the last one first."""
    state = current(ctx)
    with state.open() as me:
        found = me.sessions().listing(limit=limit)
    emit(
        state,
        [_as_dict(session) for session in found],
        lambda: table([(s.id, _line(s)) for s in found]) or "there is no session yet; hermes chat begins one",
    )


@app.command()
def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words that must all be there.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at the most.")] = 20,
) -> None:
    """Find messages that hold every word of a query, the newest first."""
    state = current(ctx)
    with state.open() as me:
        found = me.sessions().search(query, limit=limit)
    emit(
        state,
        [_message(row) for row in found],
        lambda: (
            "\n".join(f"{styled(f'{row.session_id}, {ago(row.time)}', 'dim')}\n{_said(row)}" for row in found)
            or "nothing was found"
        ),
    )


@app.command()
def show(
    ctx: typer.Context,
    session: Id,
    every: Annotated[
        bool, typer.Option("--all", help="Also what was taken back or never answered, and tool calls.")
    ] = False,
) -> None:
    """Print the transcript of a session."""
    state = current(ctx)
    with state.open() as me:
        found = me.sessions().get(session)
        rows = me.sessions().transcript(found.id, every=every)
    data = {**_as_dict(found), "messages": [_message(row) for row in rows]}
    shown = [row for row in rows if every or row.message.get("role") in ("user", "assistant")]
    emit(
        state,
        data,
        lambda: "\n\n".join(
            [f"{styled(found.id, 'bold')}  {_line(found)}", *filter(None, map(_said, shown))]
        ),
    )


@app.command()
def rename(
    ctx: typer.Context, session: Id, title: Annotated[str, typer.Argument(help="The new title.")]
) -> None:
    """Give a session another title."""
    state = current(ctx)
    with state.open() as me:
        me.hold()
        found = me.sessions().get(session)
        me.sessions().rename(found.id, title)
    note(state, f"{found.id} is called {title!r} now")


@app.command()
def delete(
    ctx: typer.Context,
    sessions: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids, or how they begin.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete transcripts for good; what the memory holds of them stays.

    To have the memory forget a session too: hermes local forget --session ID, or the command of your provider.
    """
    state = current(ctx)
    with state.open() as me:
        me.hold()
        ids = [me.sessions().get(session).id for session in sessions]
        what = f"session {ids[0]}" if len(ids) == 1 else f"{len(ids)} sessions"
        confirm(f"Delete the transcript of {what}?", yes=yes)
        gone = me.sessions().delete(ids)
    emit(state, {"deleted": gone}, f"{gone} deleted")


@app.command()
def export(
    ctx: typer.Context,
    session: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One session; all without it.")
    ] = None,
) -> None:
    """Print transcripts as JSON Lines, one session a line: what hermes memory ingest takes in.

    Each line has ``session_id``, ``title``, ``started``, ``ended`` and ``messages``; times are Unix seconds.
    """
    state = current(ctx)
    with state.open() as me:
        store = me.sessions()
        for found in [store.get(session)] if session else store.listing():
            messages = [{**row.message, "timestamp": row.time} for row in store.transcript(found.id)]
            record = {"session_id": found.id, "title": found.title, "started": found.started}
            line = {**record, "ended": found.ended, "messages": messages}
            write(json.dumps(line, ensure_ascii=False))


def _as_dict(session: Session) -> dict[str, Any]:
    import attrs

    return attrs.asdict(session)


def _message(row: StoredMessage) -> dict[str, Any]:
    return {
        "session_id": row.session_id,
        "turn": row.turn,
        "time": row.time,
        "state": row.state,
        **row.message,
    }


def _line(session: Session) -> str:
    turns = "1 turn" if session.turns == 1 else f"{session.turns} turns"
    return f"{session.title}  {styled(f'{turns}, {ago(session.updated)}', 'dim')}"


def _said(row: StoredMessage) -> str:
    text = flatten_content(row.message.get("content")).strip()
    calls = [
        f"({call['function']['name']} {call['function']['arguments']})"
        for call in row.message.get("tool_calls") or ()
    ]
    said = "\n".join(part for part in (text, *calls) if part)
    mark = "" if row.state == "done" else f" ({row.state})"
    return f"{styled(str(row.message.get('role')) + mark, 'bold')}: {said}" if said else ""
