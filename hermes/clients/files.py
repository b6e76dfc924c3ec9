"""A settings file of another program: changed after a look at the difference, with a backup, or not at all."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from hermes.errors import StoreUnavailable
from hermes.files import describe_failure, read_bytes, write_atomic

_NEW_FILE = 0o600
_BOM = "\ufeff"


@attrs.frozen
class Change:
    """What a file says, and what it shall say."""

    path: Path
    before: str | None
    """None where there is no file yet."""
    after: str

    @property
    def differs(self) -> bool:
        """Whether there is anything to write."""
        return self.after != (self.before or "")

    def diff(self) -> str:
        """The difference, as a person reads it."""
        before, after = (self.before or "").splitlines(), self.after.splitlines()
        name = str(self.path)
        return "\n".join(difflib.unified_diff(before, after, name, name, "", "now", lineterm=""))

    def write(self) -> Path | None:
        """Write it, if the file is still as it was; the backup of what was there. Raises StoreUnavailable."""
        if read_text(self.path) != self.before:
            raise StoreUnavailable(self.path, "it was changed meanwhile", next_step="run the command again")
        try:
            backup = self._keep() if self.before is not None else None
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = None if self.before is not None else _NEW_FILE
            write_atomic(self.path, self.after.encode(), mode=mode)
        except OSError as exc:
            reason = f"it cannot be written: {describe_failure(self.path.parent, exc)}"
            raise StoreUnavailable(self.path, reason, next_step="nothing was changed") from exc
        return backup

    def _keep(self) -> Path:
        """A copy of the file as it is, under a name that no other has."""
        stem, number = f"{self.path.name}.{time.strftime('%Y%m%d-%H%M%S')}", 0
        backup = self.path.with_name(f"{stem}.bak")
        while backup.exists():
            number += 1
            backup = self.path.with_name(f"{stem}-{number}.bak")
        write_atomic(backup, (self.before or "").encode(), mode=self.path.stat().st_mode & 0o777)
        return backup


def changed(path: Path, edit: Callable[[str], str]) -> Change:
    """What *edit* makes of the text of *path*, "" where there is none: its mark at the front and its line ends stay.

    Raises StoreUnavailable, also where *edit* raises ValueError: then it says why.
    """
    before = read_text(path)
    text = before or ""
    mark = _BOM if text.startswith(_BOM) else ""
    windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
    try:
        after = edit(text.removeprefix(mark).replace("\r\n", "\n") if windows else text.removeprefix(mark))
    except ValueError as exc:
        raise StoreUnavailable(
            path, f"it is not changed: {exc}", next_step="mend it, or change it by hand"
        ) from exc
    return Change(path, before, mark + (after.replace("\n", "\r\n") if windows else after))


def read_text(path: Path) -> str | None:
    """What *path* holds; None where it is not there. Raises StoreUnavailable."""
    data = read_bytes(path)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as exc:
        raise StoreUnavailable(path, f"it is not UTF-8: {exc}", next_step="nothing was changed") from exc
