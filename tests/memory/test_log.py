"""The log of a profile."""

from __future__ import annotations

import json
import logging
import stat
from pathlib import Path

from hermes.memory.log import BACKUPS, PrivateLog, profile_logger, scrub


def close(logger: logging.Logger) -> None:
    """Close what *logger* writes to."""
    for handler in logger.handlers:
        handler.close()


def test_nothing_is_made_before_the_first_record(home: Path) -> None:
    """A logger that logged nothing leaves no folder."""
    close(profile_logger(home / "logs", "work"))
    assert not home.exists()


def test_records_are_private_json_lines(home: Path) -> None:
    """Each record is one object with its time, level, event and fields, in a file that only its owner reads."""
    logger = profile_logger(home / "logs", "work")
    logger.warning("provider failed", extra={"provider": "local", "attempts": 3})
    try:
        raise OSError("no space")
    except OSError:
        logger.exception("delivery failed")
    close(logger)
    path = home / "logs" / "memory.log"
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["level"], first["event"]) == ("warning", "provider failed")
    assert (first["provider"], first["attempts"]) == ("local", 3)
    assert first["time"].endswith("+00:00")
    assert "OSError: no space" in second["error"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_secrets_are_masked(home: Path) -> None:
    """A key in an error text or a field does not reach the file."""
    key = "sk-proj-" + "a1B2c3D4e5F6" * 4
    logger = profile_logger(home / "logs", "work")
    logger.error("401 for api_key=%s", key, extra={"header": f"Authorization: Bearer {key}"})
    close(logger)
    text = (home / "logs" / "memory.log").read_text()
    assert key not in text
    assert "401" in text


def test_it_is_rotated(home: Path) -> None:
    """The log and its backups stay within their bounds, and are all private."""
    logger = profile_logger(home / "logs", "work")
    handler = logger.handlers[0]
    assert isinstance(handler, PrivateLog)
    handler.maxBytes = 500
    for number in range(100):
        logger.warning("event %d", number)
    close(logger)
    files = list((home / "logs").iterdir())
    assert len(files) == BACKUPS + 1
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert all(file.stat().st_size <= 700 for file in files)


def test_two_profiles_have_two_logs(home: Path) -> None:
    """What one profile logs is in its own file alone, and reaches the program's handlers."""
    seen: list[str] = []

    class Seen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(record.getMessage())

    handler = Seen()
    logging.getLogger("hermes").addHandler(handler)
    try:
        one, two = profile_logger(home / "a", "one"), profile_logger(home / "b", "two")
        one.warning("from one")
        two.warning("from two")
    finally:
        logging.getLogger("hermes").removeHandler(handler)
        close(one)
        close(two)
    assert "from one" in (home / "a" / "memory.log").read_text()
    assert "from two" not in (home / "a" / "memory.log").read_text()
    assert seen == ["from one", "from two"]


def test_a_log_that_cannot_be_written_disturbs_nobody(tmp_path: Path) -> None:
    """Where the folder cannot be made, records are counted as lost and nothing is raised or printed."""
    (tmp_path / "file").write_text("")
    logger = profile_logger(tmp_path / "file" / "logs", "work")
    logger.warning("one")
    logger.warning("two")
    handler = logger.handlers[0]
    assert isinstance(handler, PrivateLog)
    assert handler.lost == 2


def test_forgetting_reaches_the_log(home: Path) -> None:
    """A line whose error quoted what is to be forgotten goes; the others stay, and the log goes on."""
    logger = profile_logger(home / "logs", "work")
    logger.warning("refused: %s", "Rosa zieht nach Zürich")
    logger.warning("something else")
    assert scrub(home / "logs", "Rosa zieht nach Zürich") == 1
    logger.warning("goes on")
    close(logger)
    text = (home / "logs" / "memory.log").read_text()
    assert "Rosa" not in text
    assert "something else" in text
    assert "goes on" in text
