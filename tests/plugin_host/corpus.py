"""Published memory providers, as they are: which ones, how each is installed in the field, what it gives back.

They are installed from a package index into one environment outside the tree, made once and used again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from filelock import FileLock

CACHE = Path(os.environ.get("HERMES_TEST_CACHE") or Path.home() / ".cache" / "hermes-tests")
"""Where environments are kept; looked up before a test has taken the real home away."""
_ENVIRON = {k: v for k, v in os.environ.items() if not k.startswith("HERMES")}
_OFFLINE = ("unshare", "--net") if shutil.which("unshare") and os.geteuid() == 0 else ()
"""What is run is other people's code: where it can be, it is kept from the network."""
_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

Call = tuple[str, Mapping[str, Any]]
"""A tool, and what it is given."""


@attrs.frozen
class Package:
    """One published package."""

    requirement: str
    plugin: str
    """The name that ``memory.provider`` takes."""
    installer: tuple[str, ...] = ()
    """Its own command that puts a shim into the home; or
    ``link`` and a folder of the package, for those that are linked by hand; nothing for an entry point."""
    settings: Mapping[str, str] = attrs.field(factory=dict)
    """What has to be set before it is available; ``{home}`` is the person's folder."""
    calls_itself: str = ""
    """What the provider says its name is, where that is another."""
    available: bool = True
    """False for one that wants a key for what it does by itself; its tools work all the same."""
    taught: Call | None = None
    """A tool call of the first process."""
    asked: Call | None = None
    """A tool call of the second."""
    recalled: str = ""
    """Text that the second process is given by recall, without a tool."""
    answered: str = ""
    """Text in the answer to ``asked``."""
    left: int = 0
    """Turns that it never takes: what it does wrong itself."""
    command: tuple[str, ...] = ()
    """Words of its own command tree."""
    printed: str = ""
    """Text that they print."""
    quick: bool = True
    """False for one that takes long and shows little that others do not."""

    @property
    def name(self) -> str:
        """The name of the distribution."""
        return self.requirement.partition("==")[0]


PACKAGES = (
    Package(
        "agent-memory-os==1.10.1",
        "agent-memory-os",
        installer=("agent-memory", "hermes", "install"),
        recalled="Earl Grey",
        asked=("amos_search", {"query": "Earl Grey tea"}),
        answered="Earl Grey",
    ),
    Package(
        "hermes-local-memory==0.3.1",
        "local_memory",
        installer=("hermes-local-memory", "install-shim", "--hermes-home", "{hermes_home}"),
        calls_itself="local",
        taught=("memory_conclude", {"content": "The bicycle is a green Peugeot.", "kind": "personal"}),
        asked=("memory_search", {"query": "Peugeot"}),
        answered="green Peugeot",
        left=1,
    ),
    Package(
        "memex-hermes==0.2.2",
        "memex",
        installer=("memex-hermes", "init", "--no-backfill"),
        recalled="green Peugeot from 1987",
        asked=("memex_search", {"query": "Zephyr"}),
        answered="Zephyr",
    ),
    Package(
        "nyx-memory==7.16.0",
        "nyx",
        calls_itself="nexsandglass",
        recalled="green Peugeot from 1987",
        asked=("sandglass_search", {"query": "Zephyr launch"}),
        answered="14th of May",
        command=("status",),
        printed="nyx-memory 7.16.0",
    ),
    Package(
        "harness-memory-hermes==0.3.0",
        "harnessmemory",
        installer=("link", "harnessmemory"),
        recalled="green Peugeot from 1987",
        asked=("memory_search", {"query": "Zephyr"}),
        answered="Zephyr",
        command=("status",),
        printed="HarnessMemory provider: harnessmemory",
    ),
    Package(
        "hermes-llmwiki==0.1.1",
        "llmwiki",
        installer=("link", "hermes_llmwiki"),
        settings={"memory.llmwiki.vault_path": "{home}/vault"},
        taught=("create_entity", {"name": "Peugeot", "type": "entity", "content": "A green bicycle."}),
        asked=("search_wiki", {"query": "Peugeot"}),
        answered="Peugeot",
        command=("stats",),
        printed='"entities": 1',
    ),
    Package(
        "hermes-okf==0.5.9",
        "hermes-okf",
        installer=("hermes-okf", "install-plugin"),
        asked=("search_memory", {"query": "What did we talk about?"}),
        answered="User Profile",
        quick=False,
    ),
    Package(
        "tabularius==1.0.0",
        "tabularius",
        installer=("link", "tabularius"),
        available=False,
        taught=("memory_write", {"path": "bicycle.md", "content": "A green Peugeot.", "action": "create"}),
        asked=("memory_read", {"path": "bicycle.md"}),
        answered="green Peugeot",
        command=("status",),
        printed="Tabularius Status",
        quick=False,
    ),
)


@attrs.frozen
class Environment:
    """An environment that packages are installed in, with hermes as this one has it."""

    folder: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    @property
    def site(self) -> Path:
        """Where its packages lie."""
        return self.folder / _SITE

    def run(
        self, *args: str, home: Path, timeout: float = 120, stdin: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run one of its programs (``python`` among them) for a person whose folder is *home*."""
        return subprocess.run(
            [*_OFFLINE, str(self.folder / "bin" / args[0]), *args[1:]],
            env={
                **_ENVIRON,
                "HOME": str(home),
                "HERMES_HOME": str(home / ".hermes"),
                "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "PYTHONSAFEPATH": "1",
                **env,
            },
            cwd=home,
            input=stdin,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )

    def hermes(self, *args: str, home: Path) -> subprocess.CompletedProcess[str]:
        """Run the command line of hermes."""
        return self.run("python", "-m", "hermes", *args, home=home)


def environment(requirements: tuple[str, ...]) -> Environment:
    """The environment with *requirements*, made now or earlier. Skips the test where they cannot be had."""
    made, problem = _made(requirements)
    if problem:
        pytest.skip(f"the published packages cannot be had (offline?): {problem}")
    return made


@functools.cache
def _made(requirements: tuple[str, ...]) -> tuple[Environment, str]:
    key = hashlib.sha256(repr((requirements, sys.prefix, sys.version)).encode()).hexdigest()[:12]
    made = Environment(CACHE / f"plugins-{key}")
    done = made.folder / "done"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"plugins-{key}.lock", timeout=900):
        if not done.exists():
            if problem := install(made, requirements):
                return made, problem
            done.touch()
    return made, ""


def install(made: Environment, requirements: tuple[str, ...], *options: str) -> str:
    """Make the environment and install *requirements*; what went wrong, or nothing.

    What this interpreter has is had there too, hermes and its libraries among it.
    """
    make = [sys.executable, "-m", "venv", "--without-pip", "--clear", str(made.folder)]
    subprocess.run(make, check=True, env=_ENVIRON)
    own = Path(sys.prefix) / _SITE
    (made.site / "zz_hermes.pth").write_text(f"import site; site.addsitedir({str(own)!r})\n")
    return add(made, requirements, *options)


def add(made: Environment, requirements: tuple[str, ...], *options: str) -> str:
    """Install *requirements* into an environment that is there; what went wrong, or nothing."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        made.python,
        "install",
        "--quiet",
        "--no-input",
        "--retries",
        "1",
    ]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", *options, *requirements],
        env=_ENVIRON,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    lines = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")]
    return (lines or [f"pip ended with {done.returncode}"])[-1] if done.returncode else ""
