"""Running the server: over standard input and output, or over HTTP on this machine alone."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import attrs
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from hermes.errors import HermesError, StoreUnavailable, UsageError
from hermes.files import describe_failure, locked, read_bytes, write_atomic

LOOPBACK = ("127.0.0.1", "::1")
SCOPE = "memory"
TOKEN_BYTES = 32
LAST_ANSWERS = 0.5
"""Seconds for what was asked just before the client closed its end: the server stops answering then."""
_POSIX = os.name == "posix"
GRACE = 5
"""Seconds for requests that are being answered when the server is told to stop."""


def over_stdio(server: Server[Any]) -> None:
    """Serve the client at standard input and output, until it closes its end or this process is told to stop."""

    async def serve() -> None:
        waits = _can_be_waited_for(0)
        given = cast("anyio.AsyncFile[str]", _Lines(_taken(0), waits)) if _POSIX else None
        async with stdio_server(given) as (received, sent):
            sys.stdout = sys.stderr  # what anything prints must not get between the messages
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(_until_stopped, serve, lambda scope: scope.cancel())


def over_http(server: Server[Any], host: str, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve clients at http://HOST:PORT/mcp that know *token*; *ready* is told the address.

    Raises UsageError for an address that others can reach, HermesError for one that is taken.
    """
    if host not in LOOPBACK:
        raise UsageError(f"{host} can be reached by others", next_step=f"one of {', '.join(LOOPBACK)}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as exc:
        raise HermesError(
            f"{host}:{port} cannot be used: {exc.strerror}", next_step="choose another --port"
        ) from exc
    with listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer waits for 40 ms
        address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        app = server.streamable_http_app(
            host=host,
            json_response=True,  # a call has one answer and nothing before it: no stream is needed
            auth=AuthSettings(issuer_url=address, resource_server_url=None, required_scopes=[SCOPE]),  # type: ignore[arg-type]
            token_verifier=_Verifier(token),
        )
        config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=GRACE)
        running = _Uvicorn(config)
        ready(f"{address}/mcp")

        def stop(_: anyio.CancelScope) -> None:
            running.should_exit = True

        anyio.run(_until_stopped, lambda: running.serve(sockets=[listening]), stop)


class _Uvicorn(uvicorn.Server):
    """Leaves the signals to us: it would send them again when it is done, before the memory is closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing."""
        yield


async def _until_stopped(
    serve: Callable[[], Awaitable[None]], stop: Callable[[anyio.CancelScope], None]
) -> None:
    """Run *serve* to its end; *stop* ends it at SIGTERM and SIGINT."""
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    stop(serving)
                    return

        tasks.start_soon(listen)
        with anyio.CancelScope() as serving:
            await serve()
        tasks.cancel_scope.cancel()


def _can_be_waited_for(descriptor: int) -> bool:
    """Whether it is a pipe, a socket or a terminal, which may have nothing to say for long."""
    import stat

    return not stat.S_ISREG(os.fstat(descriptor).st_mode)


def _taken(descriptor: int) -> int:
    """Another descriptor for the same; nobody else can read from the old one any more."""
    own = os.dup(descriptor)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
    return own


@attrs.frozen
class _Lines:
    """The lines that come in at a descriptor, without a thread that would keep the process from ending."""

    descriptor: int
    waits: bool
    """Whether it may have nothing to say for long."""

    async def __aiter__(self) -> AsyncIterator[str]:
        begun: list[bytes] = []
        while data := await self._read():
            first, *more = data.split(b"\n")
            begun.append(first)
            for begins in more:
                yield b"".join(begun).decode("utf-8", "replace")
                begun = [begins]
        if rest := b"".join(begun):
            yield rest.decode("utf-8", "replace")
        await anyio.sleep(LAST_ANSWERS)

    async def _read(self) -> bytes:
        if self.waits:
            await anyio.wait_readable(self.descriptor)
        return os.read(self.descriptor, 1 << 16)


@attrs.frozen
class _Verifier:
    """Knows one token."""

    token: str = attrs.field(repr=False)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Compared in constant time, whatever its length."""
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        return AccessToken(token="(checked)", client_id="local", scopes=[SCOPE])  # noqa: S106 - not the token


def token_of(path: Path) -> str:
    """The token in the file *path*, made with 256 random bits where it is not there. Raises StoreUnavailable."""
    data = read_bytes(path) or _new_token(path)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise StoreUnavailable(path, "others can read it", next_step=f"rm {path}: a new token is made")
    token = data.decode("ascii", "replace").strip()
    if len(token) < 2 * TOKEN_BYTES:
        raise StoreUnavailable(path, "it holds no token", next_step=f"rm {path}: a new token is made")
    return token


def _new_token(path: Path) -> bytes:
    try:
        with locked(path):  # of two servers that start at once the second takes what the first has made
            if data := read_bytes(path):
                return data
            data = secrets.token_hex(TOKEN_BYTES).encode() + b"\n"
            write_atomic(path, data, mode=0o600)
            return data
    except OSError as exc:
        raise StoreUnavailable(path, f"it cannot be made: {describe_failure(path.parent, exc)}") from exc
