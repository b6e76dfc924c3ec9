"""The secrets of one profile: its ``.env``, then the environment that the process was started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

import attrs

from hermes import dotenv
from hermes.secret import Secret


@attrs.frozen(repr=False)
class Secrets:
    """Looks names up in *dotenv*, then in *environ*, a snapshot: ``os.environ`` is never asked."""

    dotenv: Mapping[str, str]
    environ: Mapping[str, str]

    @classmethod
    def of(cls, path: Path, environ: Mapping[str, str]) -> Self:
        """Those of the ``.env`` at *path*. Raises StoreUnavailable, ConfigError if it cannot be read."""
        return cls(dotenv.read(path), environ)

    def get(self, name: str) -> Secret | None:
        """The secret called *name*, or None. Empty in ``.env`` means none, whatever the environment says."""
        value = self.dotenv[name] if name in self.dotenv else self.environ.get(name)
        return Secret(value) if value else None

    def __repr__(self) -> str:
        return f"Secrets({len(self.dotenv)} in .env)"
