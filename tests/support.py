"""What several tests need: a child process without privileges, the command in a process of its own."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

POWERLESS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""Starts a command that permission bits bind, although root starts it: root's Python stays within its reach."""


def unprivileged(action: Callable[[], None]) -> None:
    """Run *action* in a forked child that is no superuser; an exception there fails the test here.

    Permission bits do not bind root, so a test of them must not run as root.
    """
    if os.getuid() != 0:
        action()
        return
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        status = 1
        try:
            nobody = pwd.getpwnam("nobody")
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            action()
            status = 0
        except BaseException as exc:  # noqa: BLE001 - the parent gets the text, whatever it is
            import traceback

            os.write(write, "".join(traceback.format_exception(exc)).encode()[-60_000:])
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        report = pipe.read().decode()
    _, wait_status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(wait_status) != 0:
        pytest.fail(report or "the unprivileged child died")


def give_to_nobody(*paths: Path) -> None:
    """Make *paths* (folders with all below them) belong to the user that ``unprivileged`` becomes."""
    if os.getuid() != 0:
        return
    nobody = pwd.getpwnam("nobody")
    for path in paths:
        for below in [path, *path.rglob("*")] if path.is_dir() else [path]:
            os.chown(below, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)


def python(
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    stdin: str = "",
    powerless: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run this Python with *args* in a process of its own, in a clean environment plus *env*.

    *powerless*: without the capabilities by which root passes every permission check.
    """
    prefix = POWERLESS if powerless and os.getuid() == 0 else ()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HERMES")}
    return subprocess.run(
        [*prefix, sys.executable, *args],
        env={**clean, "PYTHONSAFEPATH": "1", **(env or {})},
        cwd=cwd,
        timeout=timeout,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def hermes(
    *args: str,
    home: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60,
    stdin: str = "",
    powerless: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, with *home* as its root; *powerless* as ``python`` has it."""
    return python(
        "-m",
        "hermes",
        *args,
        env={"HERMES_HOME": str(home), **(env or {})},
        cwd=cwd,
        timeout=timeout,
        stdin=stdin,
        powerless=powerless,
    )
