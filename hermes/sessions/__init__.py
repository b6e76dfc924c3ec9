"""Transcripts of conversations, kept per profile."""

from hermes.sessions.records import Session, StoredMessage
from hermes.sessions.store import Sessions

__all__ = ["Session", "Sessions", "StoredMessage"]
