"""All of a setup or nothing: the small files of a home as they were before, put back where a later step fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.errors import HermesError
from hermes.files import read_bytes, write_atomic

_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"})
_LARGEST = 1 << 20
_PASSING = re.compile(r"\.(?!env$).*")
"""Lock files and files that are being written."""


@contextmanager
def all_or_nothing(home: Path, provider: str) -> Iterator[Undo]:
    """What is written in this block is taken back where the block raises; what it raised goes on.

    Raises ``HermesError`` in its place where a file could not be put back.
    """
    undo = Undo(home, provider)
    try:
        yield undo
    except BaseException as exc:
        try:
            failures = undo.back()
        except KeyboardInterrupt:  # pressed again: what is half done is done again
            failures = undo.back()
        if failures:
            raise HermesError(
                f"it stopped ({str(exc) or type(exc).__name__}), and not everything could be taken back: "
                + "; ".join(failures),
                next_step="look at these files",
            ) from exc
        raise


class Undo:
    """The settings files in *home* and in the folder of *provider*, as they were when this was made."""

    def __init__(self, home: Path, provider: str) -> None:
        names = dict.fromkeys((provider, provider.replace("-", "_")))
        self._folders = [home, *(home / name for name in names)]
        self._before = dict(self._read())

    def changed(self) -> list[Path]:
        """The files that are new, changed or gone since the start."""
        now = dict(self._read())
        paths = sorted(now.keys() | self._before.keys())
        return [path for path in paths if now.get(path) != self._before.get(path)]

    def back(self) -> list[str]:
        """Put every file back as it was. Returns, one text each, those that could not be put back."""
        failures = []
        for path in self.changed():
            try:
                before = self._before.get(path)
                if before is None:
                    path.unlink(missing_ok=True)
                else:
                    write_atomic(path, before)
            except OSError as exc:  # the others are put back all the same
                failures.append(f"{path}: {exc.strerror or exc}")
        return failures

    def _read(self) -> Iterator[tuple[Path, bytes]]:
        for folder in self._folders:
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                kept = path.suffix in _SUFFIXES or path.name == ".env"
                if not kept or _PASSING.fullmatch(path.name) or not path.is_file():
                    continue
                if path.stat().st_size <= _LARGEST and (content := read_bytes(path)) is not None:
                    yield path, content
