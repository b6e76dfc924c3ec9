"""Whether writes of the model wait for the person, and which do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes.compat import current

MEMORY = "memory"
SKILLS = "skills"


def write_approval_enabled(subsystem: str) -> bool:
    """Whether ``<subsystem>.write_approval`` is on in the settings."""
    section = current.profile().load_config().get(subsystem)
    return isinstance(section, dict) and section.get("write_approval") is True


def list_pending(subsystem: str) -> list[dict[str, Any]]:
    """What waits, oldest first; a file that cannot be read is left out."""
    folder = Path(current.profile().home(), "pending", subsystem)
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            record = json.loads(file.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return sorted(found, key=lambda record: float(record.get("time") or 0))


def get_pending(subsystem: str, pending_id: str) -> dict[str, Any] | None:
    """The one called *pending_id*, or None."""
    return next((one for one in list_pending(subsystem) if one.get("id") == pending_id), None)


def pending_count(subsystem: str) -> int:
    """How many wait."""
    return len(list_pending(subsystem))
