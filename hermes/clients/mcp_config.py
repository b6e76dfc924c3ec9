"""How the clients of MCP are told of a server: which file, which key, which form."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from hermes.clients import jsonc
from hermes.clients.files import Change, changed
from hermes.errors import NotFound, UsageError

NAME = "hermes"


@attrs.frozen
class Server:
    """The server as a client starts it."""

    command: str
    """An absolute path: a desktop program does not have the PATH of the shell."""
    args: tuple[str, ...]
    env: Mapping[str, str] = attrs.field(factory=dict)

    def entry(self, *, kind: bool) -> dict[str, Any]:
        """What is written; with *kind*, for clients that want to be told how it is reached."""
        found = {"type": "stdio"} if kind else {}
        return {**found, "command": self.command, "args": list(self.args), "env": dict(self.env)}


@attrs.frozen
class Client:
    """One client. *where* gives its file, from the environment and the folder of the project."""

    title: str
    key: str
    where: Callable[[Mapping[str, str], Path], Path]
    kind: bool = False
    toml: bool = False
    hint: str = ""

    def shown(self, server: Server) -> str:
        """The configuration to be copied."""
        if self.toml:
            return _toml_text(server)
        return json.dumps({self.key: {NAME: server.entry(kind=self.kind)}}, indent=2, ensure_ascii=False)

    def put(self, path: Path, server: Server) -> Change:
        """The change that adds the server, or brings it up to date. Raises StoreUnavailable, UsageError."""

        def edit(text: str) -> str:
            if self.toml:
                return _toml_put(text, server)
            return jsonc.put(text, [self.key, NAME], server.entry(kind=self.kind))

        return changed(path, edit)

    def remove(self, path: Path) -> Change:
        """The change that takes it out again. Raises StoreUnavailable, UsageError."""

        def edit(text: str) -> str:
            if not text.strip():
                return text
            if self.toml:
                return _toml_remove(text)
            left = jsonc.remove(text, [self.key, NAME])
            gone = left != text and not jsonc.loads(left)[self.key]
            return jsonc.remove(left, [self.key]) if gone else left

        return changed(path, edit)


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())


def _desktop(environ: Mapping[str, str], _: Path) -> Path:
    file = Path("Claude", "claude_desktop_config.json")
    if sys.platform == "darwin":
        return _home(environ) / "Library" / "Application Support" / file
    if os.name == "nt":
        return Path(environ.get("APPDATA") or _home(environ) / "AppData" / "Roaming") / file
    return Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config") / file


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "Claude Code",
        "mcpServers",
        lambda _, project: project / ".mcp.json",
        kind=True,
        hint="for every project: claude mcp add -s user hermes -- COMMAND",
    ),
    "claude-desktop": Client("Claude Desktop", "mcpServers", _desktop, hint="restart the app afterwards"),
    "cursor": Client("Cursor", "mcpServers", lambda environ, _: _home(environ) / ".cursor" / "mcp.json"),
    "codex": Client(
        "Codex",
        "mcp_servers",
        lambda environ, _: Path(environ.get("CODEX_HOME") or _home(environ) / ".codex") / "config.toml",
        toml=True,
    ),
    "vscode": Client("VS Code", "servers", lambda _, project: project / ".vscode" / "mcp.json", kind=True),
}


def client(name: str) -> Client:
    """The client called *name*. Raises NotFound."""
    if name not in CLIENTS:
        raise NotFound(f"there is no client {name!r}", next_step=f"one of {', '.join(CLIENTS)}")
    return CLIENTS[name]


def command() -> list[str]:
    """What starts this hermes, by absolute paths: another one may be first on PATH."""
    beside = Path(sys.executable).with_name("hermes.exe" if os.name == "nt" else "hermes")
    return [str(beside)] if beside.exists() else [sys.executable, "-P", "-m", "hermes"]


def _toml_text(server: Server) -> str:
    document = _tomlkit().document()
    document["mcp_servers"] = {NAME: _toml_entry(server)}
    return str(_tomlkit().dumps(document)).strip()


def _toml_put(text: str, server: Server) -> str:
    document = _parsed(text)
    servers = document.setdefault("mcp_servers", _tomlkit().table(is_super_table=True))
    if servers.get(NAME) == _toml_entry(server):
        return text
    table = _tomlkit().table()
    for key, value in _toml_entry(server).items():
        table[key] = value
    servers[NAME] = table
    return str(_tomlkit().dumps(document))


def _toml_remove(text: str) -> str:
    document = _parsed(text)
    servers = document.get("mcp_servers")
    if servers is None or NAME not in servers:
        return text
    del servers[NAME]
    if not servers:
        del document["mcp_servers"]
    return str(_tomlkit().dumps(document))


def _toml_entry(server: Server) -> dict[str, Any]:
    entry = server.entry(kind=False)
    return entry if entry["env"] else {key: value for key, value in entry.items() if key != "env"}


def _parsed(text: str) -> Any:
    document = _tomlkit().parse(text)
    if not isinstance(document.get("mcp_servers", {}), Mapping):
        raise ValueError("mcp_servers is no table")
    return document


def _tomlkit() -> Any:
    try:
        import tomlkit
    except ImportError as exc:
        raise UsageError(
            "the settings of Codex need the library tomlkit", next_step="pip install 'hermes-framework[mcp]'"
        ) from exc
    return tomlkit
