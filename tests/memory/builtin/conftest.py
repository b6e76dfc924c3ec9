"""A profile with built-in memory, and a way to call its tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.memory.builtin import BuiltinMemory, BuiltinMemoryProvider
from hermes.paths import ProfilePaths

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def paths(home: Path) -> ProfilePaths:
    """The files of a profile whose home does not exist yet."""
    return ProfilePaths(root=home, home=home)


@pytest.fixture
def memory(paths: ProfilePaths) -> BuiltinMemory:
    """The person's side of that profile."""
    return BuiltinMemory(paths)


@pytest.fixture
def provider(paths: ProfilePaths) -> BuiltinMemoryProvider:
    """The model's side of that profile, in session ``s1``."""
    started = BuiltinMemoryProvider(paths)
    started.initialize("s1", platform="cli")
    return started


@pytest.fixture
def call(provider: BuiltinMemoryProvider) -> Call:
    """Call the tool with keyword arguments; the answer as a mapping."""

    def run(**args: Any) -> dict[str, Any]:
        return call_of(provider)(**args)

    return run


def call_of(provider: BuiltinMemoryProvider) -> Call:
    """A way to call the tool of *provider*."""

    def run(**args: Any) -> dict[str, Any]:
        reply = json.loads(provider.handle_tool_call("memory", args))
        assert isinstance(reply, dict)
        return reply

    return run


@pytest.fixture
def file(paths: ProfilePaths) -> Callable[[bytes], Path]:
    """Write MEMORY.md by hand."""

    def write(data: bytes) -> Path:
        paths.memories.mkdir(parents=True, exist_ok=True)
        path = paths.memories / "MEMORY.md"
        path.write_bytes(data)
        return path

    return write
