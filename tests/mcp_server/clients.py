"""Clients of the server: the official one over a process or within this one, and one that speaks line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from hermes.cli.memory.mirror import start
from hermes.containers import Hermes
from hermes.mcp_server.server import Memory
from hermes.mcp_server.tools import MemoryTools

Use = Callable[[Any], Awaitable[Any]]


def environment(home: Path) -> dict[str, str]:
    """What the server is started with."""
    return {"HERMES_HOME": str(home), "PYTHONSAFEPATH": "1", "PATH": "/usr/bin:/bin"}


def with_client(home: Path, use: Use, *args: str, mode: str = "auto", front: tuple[str, ...] = ()) -> Any:
    """What *use* makes of a client of ``hermes FRONT mcp serve ARGS``, started for it."""

    async def talk() -> Any:
        words = ["-m", "hermes", *front, "mcp", "serve", *args]
        server = StdioServerParameters(command=sys.executable, args=words, env=environment(home))
        async with Client(server, mode=mode, read_timeout_seconds=60) as client:
            return await use(client)

    return anyio.run(talk)


def within(
    home: Path,
    use: Use,
    *,
    read_only: bool = False,
    extra: tuple[str, ...] = (),
    sessions: bool = False,
    root: Hermes | None = None,
) -> Any:
    """The same with the server in this process, which spares its start; framing included."""

    async def talk(server: Any) -> Any:
        async with Client(server, mode="legacy", read_timeout_seconds=60) as client:
            return await use(client)

    with (root or Hermes(environ={"HERMES_HOME": str(home)})).open() as me:
        manager, builtin = start(me, "mcp-test", platform="mcp"), me.builtin_provider()
        tools = MemoryTools(manager, builtin, read_only=read_only, extra=extra)
        served = Memory(tools, manager, builtin, me.sessions() if sessions else None, prompt=not read_only)
        return anyio.run(talk, served.server())


async def called(client: Any, tool: str, **arguments: Any) -> Any:
    """The structured result of a call that must go well."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


class Raw:
    """A server spoken to line by line, so that it can be killed between two of them."""

    def __init__(self, home: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hermes", "mcp", "serve", *args],
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._id = 0
        client = {"name": "t", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        """One line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request."""
        self._id += 1
        self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._id:
                return answer["result"]
        raise EOFError

    def remember(self, text: str) -> None:
        """Store an entry, and wait for the acknowledgement."""
        done = self.ask("tools/call", name="remember", arguments={"text": text})
        assert not done.get("isError"), done
