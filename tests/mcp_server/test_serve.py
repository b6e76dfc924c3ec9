"""``hermes mcp serve``, spoken to by the official client over standard input and output, and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp_server.clients import Raw, called, environment, with_client
from tests.support import hermes

LONG = pytest.mark.long


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_life_of_an_entry(home: Path, mode: str) -> None:
    """Remembered, listed, searched, recalled, updated and forgotten, in both eras of the protocol."""

    async def use(client: Any) -> None:
        done = await called(client, "remember", text="Ada plays the oboe", target="user")
        assert (done["stored"], done["waits_for_approval"]) == (True, False)
        (entry,) = (await called(client, "list"))["entries"]
        assert entry["text"] == "Ada plays the oboe"
        found = (await called(client, "search", query="oboe"))["results"]
        assert any("oboe" in item["text"] for item in found)
        await called(client, "update", entry=entry["id"], text="Ada plays the bassoon")
        assert [e["text"] for e in (await called(client, "list", target="user"))["entries"]] == [
            "Ada plays the bassoon"
        ]
        await called(client, "forget", entry="bassoon")
        assert (await called(client, "list"))["entries"] == []

    with_client(home, use, mode=mode)
    assert hermes("memory", "list", "--json", home=home).stdout.strip() == "[]"


def test_options_of_the_command(home: Path) -> None:
    """--read-only and --sessions come through, the target profile is the one served, a wrong tool is exit 3."""
    for name in ("work", "private"):
        assert hermes("profile", "create", name, home=home).returncode == 0

    async def look(client: Any) -> Any:
        return {tool.name for tool in (await client.list_tools()).tools}

    async def use(client: Any) -> None:
        await called(client, "remember", text="only at work")

    target = ("-p", "private", "--target-profile", "work")
    assert with_client(home, look, "--read-only", "--sessions", front=target) == {"recall", "search", "list"}
    with_client(home, use, front=target)
    assert "only at work" in hermes("-p", "work", "memory", "list", home=home).stdout
    assert "only at work" not in hermes("-p", "private", "memory", "list", home=home).stdout
    done = hermes("mcp", "serve", "--tool", "nosuch", home=home)
    assert done.returncode == 3
    assert "local_search" in done.stderr
    assert hermes("mcp", "serve", "-p", "gone", home=home).returncode == 3


def test_two_clients_at_once_on_one_profile(home: Path) -> None:
    """Two servers over one profile: every acknowledged entry is there in the end."""

    def write(name: str) -> None:
        raw = Raw(home)
        for n in range(8):
            raw.remember(f"{name} says {n}")
        raw.process.communicate(timeout=60)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("first", "second")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = {entry["text"] for entry in json.loads(hermes("memory", "list", "--json", home=home).stdout)}
    assert entries == {f"{name} says {n}" for name in ("first", "second") for n in range(8)}


def test_a_server_that_is_killed_has_lost_nothing_that_it_acknowledged(home: Path) -> None:
    """kill -9 behind, and in the middle of, a store: every acknowledged entry is there."""
    acknowledged = []
    for round_number in range(3):
        raw = Raw(home)
        for n in range(4):
            raw.remember(f"round {round_number} entry {n}")
            acknowledged.append(f"round {round_number} entry {n}")
        raw.send(
            {
                "jsonrpc": "2.0",
                "id": 99,
                "method": "tools/call",
                "params": {"name": "remember", "arguments": {"text": f"round {round_number} unacknowledged"}},
            }
        )
        raw.process.kill()
        raw.process.communicate()
    entries = [entry["text"] for entry in json.loads(hermes("memory", "list", "--json", home=home).stdout)]
    assert [text for text in entries if "unacknowledged" not in text] == acknowledged


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", pytest.param("SIGINT", marks=LONG)])
def test_it_ends_cleanly_and_leaves_nothing_undelivered(home: Path, how: str) -> None:
    """The client goes, or the server is told to stop: exit 0, silence, and the provider has the mirrored entry."""
    raw = Raw(home)
    raw.remember("Ada keeps bees")
    if how == "end of input":
        _, error = raw.process.communicate(timeout=60)
    else:  # its input stays open: it must not wait for that
        raw.process.send_signal(getattr(signal, how))
        raw.process.wait(60)
        assert raw.process.stderr is not None
        error = raw.process.stderr.read()
        raw.process.communicate()
    assert raw.process.returncode == 0, error
    assert error == ""
    status = json.loads(hermes("memory", "status", "--json", home=home).stdout)
    assert status["journal"]["undelivered"] == 0
    assert "Ada keeps bees" in hermes("memory", "search", "bees", home=home).stdout


def test_input_from_a_file_is_served_too(home: Path, tmp_path: Path) -> None:
    """Requests that come from a file, the last one without a line end, are answered; what is no message is not."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
    ]
    path = tmp_path / "requests"
    path.write_text("\n".join([*map(json.dumps, requests[:2]), "no message", json.dumps(requests[2])]))
    with path.open() as file:
        done = subprocess.run(
            [sys.executable, "-m", "hermes", "mcp", "serve"],
            env=environment(home),
            stdin=file,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers if "result" in answer] == [1, 2]


# -- HTTP ------------------------------------------------------------------------------------------------


@contextmanager
def served(home: Path, *args: str) -> Iterator[str]:
    """The address of a server over HTTP, which must end cleanly."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes", "mcp", "serve", "--http", "--port", "0", "--json", *args],
        env=environment(home),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    try:
        assert line, process.communicate()[1]
        told = json.loads(line)
        assert told["token_file"] == str(home / "mcp-token")
        yield told["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in error


def bearer(home: Path) -> dict[str, str]:
    """What lets a client in."""
    return {"Authorization": f"Bearer {(home / 'mcp-token').read_text().strip()}"}


async def over_http(address: str, headers: dict[str, str], text: str) -> Any:
    """What the server lists after *text* was remembered through it."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        await called(client, "remember", text=text)
        return [entry["text"] for entry in (await called(client, "list"))["entries"]]


def status_of(address: str, **headers: Any) -> int:
    """The HTTP status of a bare request."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return httpx2.post(address, json=body, headers={**accept, **headers}, timeout=30).status_code


def test_http_needs_the_token_and_a_local_host(home: Path) -> None:
    """No token, a wrong one, a foreign Host or Origin: refused; with the token it is the same server."""
    with served(home) as address:
        path = home / "mcp-token"
        token = path.read_text().strip()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(bytes.fromhex(token)) == 32
        assert status_of(address) == 401
        wrong = f"{int(token[0], 16) ^ 1:x}{token[1:]}"
        for other in (token[:-1], token + "0", wrong, "\u00e9"):
            assert status_of(address, Authorization=f"Bearer {other}".encode()) == 401
        assert status_of(address, **bearer(home), Host="evil.example") == 421
        assert status_of(address, **bearer(home), Origin="http://evil.example") == 403
        assert anyio.run(over_http, address, bearer(home), "over http") == ["over http"]

        async def both() -> None:
            async with anyio.create_task_group() as tasks:
                for name in ("one", "two"):
                    tasks.start_soon(over_http, address, bearer(home), name)

        anyio.run(both)
    entries = json.loads(hermes("memory", "list", "--json", home=home).stdout)
    assert {entry["text"] for entry in entries} == {"over http", "one", "two"}


def test_http_on_the_other_loopback(home: Path) -> None:
    """::1 is served as 127.0.0.1 is, with the token that was made before."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as exc:
        pytest.skip(f"no IPv6 here: {exc}")
    with served(home, "--host", "::1") as address:
        assert address.startswith("http://[::1]:")
        assert status_of(address, **bearer(home), Host="evil.example") == 421
        assert anyio.run(over_http, address, bearer(home), "over six") == ["over six"]


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", *(pytest.param(h, marks=LONG) for h in ("::", "192.168.1.5", "localhost.evil.example"))],
)
def test_http_binds_this_machine_only(home: Path, host: str) -> None:
    """Any address that others could reach is refused before anything is served."""
    done = hermes("mcp", "serve", "--http", "--host", host, home=home)
    assert done.returncode == 2
    assert "127.0.0.1" in done.stderr


def test_a_token_that_others_can_read_is_refused(home: Path) -> None:
    """A token file with the wrong mode is named, and not used."""
    home.mkdir(mode=0o700)
    path = home / "mcp-token"
    path.write_text("ab" * 32)
    os.chmod(path, 0o644)  # noqa: PTH101 - the mode is the point
    done = hermes("mcp", "serve", "--http", home=home)
    assert done.returncode == 4
    assert "others can read it" in done.stderr
    assert "ab" * 8 not in done.stderr + done.stdout


def test_a_home_that_cannot_be_written_has_no_token(reachable: Path) -> None:
    """Where no token can be made there is no server, and the reason is told."""
    home = reachable / "home"
    home.mkdir(mode=0o700)
    home.chmod(0o500)
    done = hermes("mcp", "serve", "--http", home=home, powerless=True)
    assert done.returncode == 4, done.stderr
    assert "mcp-token" in done.stderr


def test_an_address_in_use_is_named(home: Path) -> None:
    """A port that somebody has is an error with a hint, not a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = hermes("mcp", "serve", "--http", "--port", str(taken.getsockname()[1]), home=home)
    assert done.returncode == 1
    assert "--port" in done.stderr
