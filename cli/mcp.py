"""``hermes mcp``: this memory for every client of the Model Context Protocol."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hermes.cli.foreign_file import apply, own_command
from hermes.cli.lazy import lazy_app
from hermes.cli.output import emit
from hermes.cli.state import current

app = lazy_app(
    {
        "serve": (
            "hermes.cli.mcp_serve:serve",
            "Serve this memory to one client, over standard input and output or HTTP.",
        )
    },
    "This memory for other agents, by the Model Context Protocol.",
)


@app.command()
def config(
    ctx: typer.Context,
    client: Annotated[
        str, typer.Argument(metavar="CLIENT", help="claude-code, claude-desktop, cursor, codex or vscode.")
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Put it into the client's file; shown and asked first.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out of the client's file again.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Serve recall and lists only.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="PATH", help="The client's file, if it lies elsewhere.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Print how a client is told of this memory, or write it into the client's file.

    Other servers, comments and everything else in the file stay as they are; the file as it was is kept beside it.
    """
    from hermes.clients import mcp_config
    from hermes.errors import UsageError

    state = current(ctx)
    chosen = mcp_config.client(client)
    if write and remove:
        raise UsageError("--write and --remove exclude each other", next_step="leave one out")
    path = file or chosen.where(os.environ, Path.cwd())
    if remove:
        return apply(
            state, chosen.remove(path), yes=yes, done=f"{chosen.title} is not told of this memory any more"
        )
    program, *front = own_command(state)
    server = mcp_config.Server(program, (*front, "mcp", "serve", *(["--read-only"] if read_only else [])))
    if write:
        hint = f"; {chosen.hint}" if chosen.hint else ""
        return apply(
            state, chosen.put(path, server), yes=yes, done=f"{chosen.title} is told of this memory{hint}"
        )
    shown = chosen.shown(server)
    entry = server.entry(kind=chosen.kind)
    return emit(state, {"client": client, "file": str(path), "config": shown, "server": entry}, shown)
