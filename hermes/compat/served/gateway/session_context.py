"""The variables of a gateway's session. Without a gateway they are those of the process."""

from __future__ import annotations

import os


def get_session_env(name: str, default: str = "") -> str:
    """The variable *name* (``HERMES_SESSION_…``), or *default*."""
    return os.environ.get(name, default)
