"""A conversation of real parts against a scripted model on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from hermes.context.engine import ContextEngine
from hermes.conversation import Conversation
from hermes.conversation.conversation import Screen
from hermes.memory.builtin import BuiltinMemoryProvider
from hermes.memory.journal import Journal
from hermes.memory.manager import MemoryManager
from hermes.model.client import Model
from hermes.model.endpoint import endpoint
from hermes.paths import ProfilePaths
from hermes.plugins.context_engine.compressor.compressor import Compressor
from hermes.sessions import Sessions
from hermes.testing import RecordingProvider
from tests.conversation.server import ScriptedModel, says


@pytest.fixture
def scripted() -> Iterator[ScriptedModel]:
    """A model that says ``fine`` until a test gives it something else to answer."""
    server = ScriptedModel(lambda request: says("fine"))
    yield server
    server.close()


@attrs.define
class Talk:
    """A conversation and what it is made of."""

    conversation: Conversation
    provider: Any
    paths: ProfilePaths
    shown: list[str]
    notes: list[str]
    waited: list[float]

    def say(self, text: str) -> Any:
        """One turn."""
        return self.conversation.say(text)

    def leave(self) -> None:
        """End as a process does."""
        self.conversation.close()
        self.conversation.memory.shutdown_all()


@pytest.fixture
def talking(tmp_path: Path, scripted: ScriptedModel) -> Iterator[Callable[..., Talk]]:
    """Makes conversations over one home; they are closed, and their memory shut down, at the end."""
    opened: list[tuple[Conversation, MemoryManager, Sessions]] = []

    def make(
        provider: Any = None,
        *,
        engine: Callable[[Model], ContextEngine] = lambda model: Compressor(model.ask),
        context_length: int = 100_000,
        session: str = "",
        **options: Any,
    ) -> Talk:
        paths = ProfilePaths(tmp_path, tmp_path / "home")
        provider = RecordingProvider() if provider is None else provider
        memory = MemoryManager(home=paths.home, journal=Journal(paths.journal))
        memory.add_provider(BuiltinMemoryProvider(paths))
        memory.add_provider(provider)
        shown: list[str] = []
        notes: list[str] = []
        waited: list[float] = []
        model = Model(
            endpoint(scripted.base_url, "scripted", None, context_length),
            wait=waited.append,
            told=notes.append,
            silence=20.0,
        )
        sessions = Sessions(paths.sessions)
        talk = Conversation(
            memory=memory,
            sessions=sessions,
            model=model,
            engine=engine(model),
            screen=Screen(shown.append, notes.append, notes.append, notes.append),
            **{"nudge_every": 0, **options},
        )
        talk.start(session)
        opened.append((talk, memory, sessions))
        return Talk(talk, provider, paths, shown, notes, waited)

    yield make
    for talk, memory, sessions in opened:
        talk.close()
        memory.shutdown_all()
        sessions.close()
        talk.model.close()
