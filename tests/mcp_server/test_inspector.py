"""The server as the inspector of the protocol sees it: a client that is not the one it was written with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import hermes

PACKAGE = "@modelcontextprotocol/inspector@2.12.0"
CACHE = (
    Path(os.environ.get("HERMES_TEST_CACHE") or Path.home() / ".cache" / "hermes-tests") / "inspector-2.12.0"
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def inspector() -> str:
    """The command, installed once into the cache; without node, or a network the first time, it is skipped."""
    program = CACHE / "node_modules" / ".bin" / "mcp-inspector"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [
            npm,
            "install",
            "--prefix",
            str(CACHE),
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            PACKAGE,
        ]
        done = subprocess.run(
            command,
            env={**os.environ, "HOME": str(CACHE)},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"{PACKAGE} cannot be had: {done.stderr[-200:]}")
    return str(program)


def inspect(inspector: str, home: Path, folder: Path, *words: str) -> tuple[int, Any]:
    """The exit code and the JSON that the inspector prints for a method of a server started for it."""
    server = [sys.executable, "-m", "hermes", "mcp", "serve"]
    done = subprocess.run(
        [inspector, "--cli", "-e", f"HERMES_HOME={home}", "-e", "PYTHONSAFEPATH=1", *server, *words],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        pytest.fail(done.stdout + done.stderr)


def test_the_inspector_finds_nothing_wrong(inspector: str, home: Path, tmp_path: Path) -> None:
    """It lists tools whose schemas are portable, calls them, tells their errors, reads resources and the prompt."""

    def ask(*words: str) -> tuple[int, Any]:
        return inspect(inspector, home, tmp_path, *words)

    code, listed = ask("--method", "tools/list", "--strict")
    assert code == 0
    assert {tool["name"] for tool in listed["tools"]} >= {"recall", "remember", "forget"}
    remember = ("--method", "tools/call", "--tool-name", "remember", "--tool-arg", "text=Ada keeps bees")
    code, done = ask(*remember, "target=user")
    assert (code, done["structuredContent"]["stored"]) == (0, True)
    code, refused = ask(
        "--method", "tools/call", "--tool-name", "forget", "--tool-arg", "entry=no such thing"
    )
    assert code == 5
    assert refused["isError"] is True
    code, read = ask("--method", "resources/read", "--uri", "memory://USER.md")
    assert (code, read["contents"][0]["text"]) == (0, "- Ada keeps bees")
    code, prompt = ask("--method", "prompts/get", "--prompt-name", "memory")
    assert code == 0
    assert "Ada keeps bees" in prompt["messages"][0]["content"]["text"]
    assert "Ada keeps bees" in hermes("memory", "list", home=home).stdout
