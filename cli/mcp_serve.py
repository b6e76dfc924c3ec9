"""``hermes mcp serve``."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from hermes.cli.memory.mirror import start
from hermes.cli.output import note, write
from hermes.cli.state import State, current
from hermes.errors import Unavailable

FLUSH_SECONDS = 5.0


def serve(
    ctx: typer.Context,
    http: Annotated[
        bool, typer.Option("--http", help="Over HTTP, for several clients; a token is needed.")
    ] = False,
    host: Annotated[str, typer.Option("--host", help="127.0.0.1 or ::1.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8765,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Recall, search, list and resources only.")
    ] = False,
    tool: Annotated[
        list[str] | None, typer.Option("--tool", metavar="NAME", help="Offer this tool of the provider too.")
    ] = None,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="Offer the transcripts of hermes chat too.")
    ] = False,
) -> None:
    """Serve this memory to one client, over standard input and output or HTTP.

    Over HTTP it can be reached from this machine only, by who knows the token in the file mcp-token of the
    profile. It ends when the client closes its end, or on SIGTERM, with nothing undelivered that could be delivered.
    """
    try:
        from hermes.mcp_server import transports
        from hermes.mcp_server.server import Memory
        from hermes.mcp_server.tools import MemoryTools
    except ImportError as exc:
        raise Unavailable(
            f"the package of the protocol is not installed ({exc})",
            next_step="pip install 'hermes-framework[mcp]'",
        ) from exc
    state = current(ctx)
    with state.open() as me:
        manager, builtin = (
            start(me, f"mcp-{os.getpid()}-{int(time.time())}", platform="mcp"),
            me.builtin_provider(),
        )
        tools = MemoryTools(manager, builtin, read_only=read_only, extra=tool or ())
        transcripts = me.sessions() if sessions else None
        server = Memory(tools, manager, builtin, transcripts, prompt=not read_only).server()
        if http:
            path = me.paths().home / "mcp-token"
            token = transports.token_of(path)
            transports.over_http(server, host, port, token, lambda at: _announce(state, at, path))
        else:
            if sys.stdin.isatty():
                note(
                    state,
                    "waiting for a client; one is told of this memory by hermes mcp config CLIENT --write",
                )
            transports.over_stdio(server)
        manager.flush_pending(FLUSH_SECONDS)


def _announce(state: State, address: str, token: Path) -> None:
    if state.json:
        write(json.dumps({"url": address, "token_file": str(token)}))
        sys.stdout.flush()
    else:
        note(state, f"serving {address}; the token is in {token}")
