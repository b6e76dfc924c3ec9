"""Text that would act on the model that reads it."""

from __future__ import annotations

from hermes.memory import threats


def scan_for_threats(content: str, scope: str = "context") -> list[str]:
    """The kinds of what was found in *content*; empty for a harmless text. There is one *scope* here."""
    return [threat.kind for threat in threats.scan_for_threats(content)]


def first_threat_message(content: str, scope: str = "strict") -> str | None:
    """The first thing found in *content*, as one line; None for a harmless text."""
    return threats.first_threat_message(content)
