"""What the worker of a profile is started with: its variables, its log, and a home of its own where that is wanted."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.errors import ProviderUnavailable
from hermes.files import private_dir
from hermes.memory.lanes import LimitSet
from hermes.overlay import variables_for
from hermes.plugin_host.host import Host
from hermes.plugin_host.worker.restarting import Worker

_OF_THE_MACHINE = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TMP|TEMP|TZ|LANG|LANGUAGE|LC_[A-Z]+"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(?:HTTP|HTTPS|ALL|NO|http|https|all|no)_(?:PROXY|proxy)"
)
_OF_THE_TERMINAL = re.compile(
    r"TERM|COLORTERM|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|EDITOR|VISUAL|PAGER|BROWSER|DISPLAY|WAYLAND_DISPLAY|XDG_RUNTIME_DIR"
)


def environment(
    profile: str,
    home: Path,
    dotenv: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    private_home: Path | None = None,
    terminal: bool = False,
) -> dict[str, str]:
    """All the variables of a child that runs a plugin of *profile*.

    Of *environ*, that of this process, it gets what belongs to the machine and its network (and to the
    *terminal*): where programs, folders and certificates are, the language, proxies. The rest is the profile's.
    """
    machine = {
        name: value
        for name, value in environ.items()
        if _OF_THE_MACHINE.fullmatch(name) or (terminal and _OF_THE_TERMINAL.fullmatch(name))
    }
    own = {"HOME": str(private_home), "USERPROFILE": str(private_home)} if private_home else {}
    return {**machine, **variables_for(profile, home, dotenv).values, **own}


def open_worker(
    spec: Mapping[str, Any],
    manifest: Mapping[str, Any],
    *,
    profile: str,
    home: Path,
    dotenv: Mapping[str, str],
    environ: Mapping[str, str],
    host: Host,
    limits: LimitSet,
    private_home: bool = False,
) -> Worker:
    """A worker for the plugin of *spec*, not yet started. Raises ProviderUnavailable and HomeUnusable."""
    name = spec["name"]
    if os.name != "posix":
        raise ProviderUnavailable(
            name,
            "plugins cannot run in a process of their own on this system",
            next_step="hermes config set plugins.isolation thread",
        )
    own_home = private_home_of(home, name) if private_home else None
    variables = environment(profile, home, dotenv, environ, private_home=own_home)
    log = home / "logs" / "plugins" / f"{name}.log"
    return Worker(spec, manifest, environment=variables, log=log, host=host, limits=limits)


def private_home_of(home: Path, name: str) -> Path:
    """The folder that the plugin *name* takes for the person's home, made if it is missing. Raises HomeUnusable."""
    return private_dir(home / "plugin-homes" / name)
