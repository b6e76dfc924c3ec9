"""The log of one profile: ``<home>/logs/memory.log``, one JSON object a line, rotated, secrets masked.

Nothing that a person said is logged; an error's text may quote a secret, so all of it is masked.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from hermes.errors import HermesError
from hermes.files import private_dir, write_atomic
from hermes.memory.redact import redact_text

MAX_BYTES = 1 << 20
BACKUPS = 3
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def profile_logger(logs: Path, profile: str) -> logging.Logger:
    """A logger of this profile alone, whose records go to *logs* and on to the program's own ``hermes`` logger.

    The file is made with the first record. Close its handlers when the profile closes.
    """
    logger = logging.Logger(f"hermes.memory.{profile}", logging.INFO)
    logger.parent = logging.getLogger("hermes")
    logger.addHandler(PrivateLog(logs / "memory.log"))
    return logger


def scrub(logs: Path, text: str) -> int:
    """Take every line that holds *text* out of the logs in the folder *logs*, those of plugins too; how many.

    An error may quote what it was given. Raises OSError.
    """
    forms = {text.encode("utf-8", "surrogatepass"), json.dumps(text)[1:-1].encode()} - {b""}
    gone = 0
    for path in sorted([*logs.glob("memory.log*"), *logs.glob("plugins/*.log*")]):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not any(form in line for form in forms)]
        if len(kept) != len(lines):
            write_atomic(path, b"".join(kept))
            gone += len(lines) - len(kept)
    return gone


class PrivateLog(RotatingFileHandler):
    """Writes 0600 files in a 0700 folder; a record that cannot be written is counted in ``lost``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8", delay=True)
        self.setFormatter(JsonLine())
        self.lost = 0

    def _open(self) -> TextIO:  # type: ignore[override]
        private_dir(Path(self.baseFilename).parent)
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding)

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*; a full or read-only disk is no reason to disturb a turn."""
        try:
            if self.stream is not None and not self._is_current(self.stream):
                self.close()  # somebody took lines out: the file is a new one
            super().emit(record)
        except HermesError:  # the folder cannot be made
            self.lost += 1

    def _is_current(self, stream: TextIO) -> bool:
        try:
            return os.path.samestat(Path(self.baseFilename).stat(), os.fstat(stream.fileno()))
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; what a full disk did not take is lost with it."""
        try:
            super().close()
        except OSError:
            self.lost += 1
            self.stream = None

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Count it."""
        self.lost += 1


class JsonLine(logging.Formatter):
    """``time`` (ISO 8601, UTC), ``level``, ``event`` and the fields that were given in ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """*record* as one line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return redact_text(json.dumps(line, ensure_ascii=True, default=str))
