"""No test can reach a real home or a network beyond this machine."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_real_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point every notion of a home at an empty folder, and forget what the environment says of hermes."""
    empty = tmp_path_factory.mktemp("no-home")
    for name in [n for n in os.environ if n.startswith("HERMES")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv("USERPROFILE", str(empty))


@pytest.fixture(autouse=True)
def _no_real_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that would leave this machine."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise AssertionError(f"a test tried to reach {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The path of a home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def reachable() -> Iterator[Path]:
    """An empty folder that the user of ``unprivileged`` can reach: the parents of ``tmp_path`` are root's."""
    with tempfile.TemporaryDirectory(prefix="hermes-test-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()
