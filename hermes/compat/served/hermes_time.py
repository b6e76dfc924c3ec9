"""The person's time."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hermes.compat import current


def get_timezone() -> ZoneInfo | None:
    """The zone that ``timezone`` in the settings names; None for that of the machine."""
    name = current.profile().load_config().get("timezone")
    try:
        return ZoneInfo(name) if isinstance(name, str) and name.strip() else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


def get_timezone_name() -> str:
    """What that zone is called; empty for that of the machine."""
    zone = get_timezone()
    return zone.key if zone else ""


def now() -> datetime:
    """The time of now, with its zone."""
    return datetime.now(get_timezone()).astimezone(get_timezone())
