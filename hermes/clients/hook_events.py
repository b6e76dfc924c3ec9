"""What the hooks of Claude Code say, turned into recall and turns. Each event is a process of its own.

The prompt comes in one event and the answer in another: in between it lies in a small file of the profile. A
session lives longer than these processes, so it is kept open for a while after each of them.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Mapping
from logging import Logger
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from hermes.errors import HermesError
from hermes.files import locked, private_dir, read_bytes, write_atomic
from hermes.memory.fences import build_memory_context_block
from hermes.memory.lanes import describe
from hermes.memory.provider import is_trivial_prompt

if TYPE_CHECKING:
    from hermes.memory.journal import Journal, Recorded
    from hermes.memory.manager import MemoryManager

CLIENT = "claude-code"
PLATFORM = "cli"
"""Nobody but the owner of the profile speaks there: what is said is theirs in every session."""
MOST_CONTEXT = 9_000
"""Characters: a little more than 10,000 and the client shows the model a preview only."""
MOST_FIRST = 4_500
"""Of these, for what is said once in a session."""
STAYS_OPEN = 6 * 3600.0
"""Seconds for which a session counts as going on after its last event."""
KEPT_PROMPTS = 86_400.0
"""Seconds after which a prompt that never had an answer is deleted."""
WAIT = 4.0
"""Seconds to wait for another event of the same session."""
_AROUND = len(build_memory_context_block("x")) + 100
"""Characters around what is in a block, and for saying that it was cut."""


@attrs.frozen
class Events:
    """The events of one client, for the profile that *memory* and *journal* belong to; *folder* is its own."""

    memory: MemoryManager
    journal: Journal
    folder: Path
    log: Logger

    def prompt(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """A prompt was submitted: what the client shall add for the model, None for nothing."""
        text = _text(event, "prompt")
        if event.get("agent_id"):
            return None
        if not text.strip() or text.lstrip().startswith("/"):
            self._prompt_file(event).unlink(missing_ok=True)  # the answer that follows is not to that one
            return None
        self.memory.initialize_for_inspection(
            _session(event), platform=PLATFORM, cwd=_text(event, "cwd") or None
        )
        blocks = []
        if self._keep(event, text):
            builtin, *_ = self.memory.providers  # the others speak of tools that are not offered here
            words = builtin.system_prompt_block()
            blocks = [build_memory_context_block(words, limit=MOST_FIRST - _AROUND)]
        if not is_trivial_prompt(text):
            room = MOST_CONTEXT - len("\n\n".join(blocks)) - 2 - _AROUND
            blocks.append(build_memory_context_block(self.memory.prefetch_all(text), limit=room))
        context = "\n\n".join(filter(None, blocks))
        if not context:
            return None
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": context}}

    def stop(self, event: Mapping[str, Any]) -> Recorded | None:
        """The model has answered: the turn is kept, once, however often the event comes. None if there is none."""
        if event.get("agent_id"):
            return None
        with locked(self._prompt_file(event), WAIT):
            kept = self._kept(event)
            answer = _text(event, "last_assistant_message") or _last_answer(_text(event, "transcript_path"))
            if kept is None or not answer.strip():
                return None
            session = self._start(event)
            recorded = self.memory.sync_all(
                kept["text"], answer, idempotency_key=f"{session}:{kept['turn']}", turn_time=kept["time"]
            )
            if name := self.memory.external_name:  # this process goes and the session does not
                self.journal.open_session(name, session, linger=STAYS_OPEN)
            if recorded.durable:
                write_atomic(self._mark(event), b"answered")
                self._prompt_file(event).unlink(missing_ok=True)
            return recorded

    def end(self, event: Mapping[str, Any]) -> Recorded | None:
        """The session is over. None if that is known, or nothing was answered in it."""
        with locked(self._prompt_file(event), WAIT):
            answered = read_bytes(self._mark(event))
            for path in (self._prompt_file(event), self._mark(event)):
                path.unlink(missing_ok=True)
            if not answered:
                return None
            self._start(event)
            return self.memory.on_session_end([])

    # -- inside ------------------------------------------------------------------------------------------

    def _start(self, event: Mapping[str, Any]) -> str:
        session = _session(event)
        self.memory.initialize_all(session, platform=PLATFORM, cwd=_text(event, "cwd") or None)
        return session

    def _keep(self, event: Mapping[str, Any], text: str) -> bool:
        """Keep the prompt until its answer comes; whether it is the first of its session."""
        turn = _text(event, "prompt_id") or uuid.uuid4().hex
        kept = {"turn": turn, "text": text, "time": time.time()}
        try:
            private_dir(self.folder)
            self._sweep()
            write_atomic(self._prompt_file(event), json.dumps(kept).encode())
            self._mark(event).touch(0o600, exist_ok=False)
        except FileExistsError:
            return False
        except (OSError, HermesError) as exc:  # recall goes on where nothing can be written
            self.log.warning("a prompt could not be kept: %s", describe(exc))
            return False
        return True

    def _kept(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """The prompt that was answered, unless another one has taken its place."""
        data = read_bytes(self._prompt_file(event))
        if data is None:
            return None
        kept: dict[str, Any] = json.loads(data)
        return kept if _text(event, "prompt_id") in ("", kept["turn"]) else None

    def _prompt_file(self, event: Mapping[str, Any]) -> Path:
        name = hashlib.sha256(_session(event).encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return self.folder / f"{name}.json"

    def _mark(self, event: Mapping[str, Any]) -> Path:
        """The file that says that the session is going on; with something in it, that a turn was kept."""
        return self._prompt_file(event).with_suffix(".begun")

    def _sweep(self) -> None:
        limit = time.time() - KEPT_PROMPTS
        for path in self.folder.iterdir():
            if path.suffix in (".json", ".begun", ".lock") and path.stat().st_mtime < limit:
                path.unlink(missing_ok=True)


def _session(event: Mapping[str, Any]) -> str:
    return f"{CLIENT}-{_text(event, 'session_id') or 'unknown'}"


def _text(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _last_answer(transcript: str) -> str:
    """The last answer in the transcript, for versions of the client that do not say it in the event."""
    if not transcript or not Path(transcript).is_file():
        return ""
    from hermes.importers import claude_code
    from hermes.memory.conversations import Said

    answers: list[str] = []
    with Path(transcript).open("rb") as file:
        for one in claude_code.read(file, transcript):
            if isinstance(one, Said):
                answers = [] if one.role == "user" else [*answers, one.text]
    return "\n\n".join(answers)
