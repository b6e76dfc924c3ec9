"""Why plugins did not load when that was last tried: kept, so that a list can say it without trying again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import attrs

from hermes import files
from hermes.errors import HermesError


@attrs.frozen
class Failure:
    """Why a plugin did not load, where it came up, and when (Unix seconds)."""

    message: str
    file: str = ""
    line: int = 0
    when: float = 0.0

    def __str__(self) -> str:
        return f"{self.message} ({self.file}:{self.line})" if self.file else self.message


@attrs.frozen
class Failures:
    """The last failure of each plugin of one profile, in a file of its own at *path*."""

    path: Path

    def all(self) -> dict[str, Failure]:
        """By the name of the plugin; empty where nothing failed, or it cannot be read."""
        try:
            data = json.loads(files.read_bytes(self.path) or b"{}")
            return {str(name): Failure(**fields) for name, fields in data.items()}
        except (HermesError, OSError, ValueError, TypeError, AttributeError):
            return {}  # a note about what failed is not worth an error of its own

    def note(self, name: str, failure: Failure) -> bool:
        """Keep *failure*; False if the same was known already."""
        known = self.all()
        before = known.get(name)
        new = before is None or attrs.evolve(before, when=0.0) != attrs.evolve(failure, when=0.0)
        self._write({**known, name: attrs.evolve(failure, when=time.time())})
        return new

    def forget(self, name: str) -> None:
        """The plugin has loaded, or is gone."""
        if not self.path.exists():
            return
        known = self.all()
        if known.pop(name, None) is not None:
            self._write(known)

    def _write(self, known: dict[str, Failure]) -> None:
        if not self.path.parent.parent.is_dir():
            return  # a home that does not exist is not made for this
        try:
            files.private_dir(self.path.parent)
            files.write_atomic(self.path, json.dumps({n: attrs.asdict(f) for n, f in known.items()}).encode())
        except (HermesError, OSError):
            return  # a home that cannot be written: the caller reports the failure all the same
