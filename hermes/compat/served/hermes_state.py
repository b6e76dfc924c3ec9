"""The transcripts of the profile, to be read. Needs attrs."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hermes.compat import current
from hermes.errors import NotFound, StoreUnavailable
from hermes.sessions.records import Session
from hermes.sessions.store import Sessions


def _default_db_path() -> Path:
    """Where they are kept."""
    return current.home() / "sessions.db"


class SessionDB:
    """The sessions in *db_path* (default: the profile's). Raises StoreUnavailable where there are none yet."""

    def __init__(self, db_path: str | Path | None = None) -> None:
        self.db_path = Path(db_path) if db_path else _default_db_path()
        if not self.db_path.is_file():
            raise StoreUnavailable(
                self.db_path, "there are no transcripts yet", next_step="hermes chat keeps the first one"
            )
        self._sessions = Sessions(self.db_path)

    def list_sessions(self, limit: int = 20, **_: Any) -> list[dict[str, Any]]:
        """The sessions, the one that was last spoken in first."""
        return [_facts(session) for session in self._sessions.listing(limit=limit)]

    def get_session(self, session_id: str) -> dict[str, Any] | None:
        """The session *session_id*, or None."""
        try:
            session = self._sessions.get(session_id)
        except NotFound:
            return None
        return _facts(session) if session.id == session_id else None

    def get_messages(self, session_id: str) -> list[dict[str, Any]]:
        """What was said in it, each with ``session_id`` and ``timestamp`` (Unix seconds)."""
        stored = self._sessions.transcript(session_id)
        return [{**one.message, "session_id": session_id, "timestamp": one.time} for one in stored]

    def get_messages_as_conversation(self, session_id: str) -> list[dict[str, Any]]:
        """What was said in it, as the model is given it."""
        return [dict(one.message) for one in self._sessions.transcript(session_id)]

    def search_messages(self, query: str, limit: int = 20, **_: Any) -> list[dict[str, Any]]:
        """Messages that hold every word of *query*, the newest first."""
        found = self._sessions.search(query, limit=limit)
        return [{**one.message, "session_id": one.session_id, "timestamp": one.time} for one in found]

    def close(self) -> None:
        """Close the file."""
        self._sessions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _facts(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title,
        "parent_session_id": session.parent or None,
        "started_at": session.started,
        "last_active": session.updated,
        "ended_at": session.ended,
        "end_reason": session.end_reason or None,
    }
