"""The examples of the embedding guide, run as a reader would run them."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import time
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import python

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """The example called *name*, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("example", ["agent.py", "agent_async.py"])
def test_a_second_run_knows_what_the_first_was_told(home: Path, example: str) -> None:
    """What was said in one process is recalled in the next, in another session."""
    script, env = str(ROOT / "examples" / example), {"HERMES_HOME": str(home)}
    first = python(script, "monday", "The staging database moved to pve-07 today.", env=env)
    assert first.returncode == 0, first.stderr
    second = python(script, "tuesday", "Where is the staging database now?", env=env)
    assert second.returncode == 0, second.stderr
    assert "pve-07" in second.stdout
    assert second.stderr == ""


@pytest.mark.parametrize("example", ["agent", "agent_async"])
def test_the_agent_itself_is_under_thirty_lines(example: str) -> None:
    """Opening, initialising, prompt block, recall, sync and end take fewer than thirty lines of an agent."""
    source = (ROOT / "examples" / f"{example}.py").read_text()
    body = re.search(r"^(?:async )?def converse.*?(?=^\S(?!\)| ))", source, re.MULTILINE | re.DOTALL)
    assert body is not None
    assert len(body.group().strip().splitlines()) < 30


def test_the_loop_goes_on_while_a_provider_is_slow(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under asyncio another task runs while a recall takes its time."""
    from hermes.containers import Hermes
    from hermes.testing import RecordingProvider

    class Slow(RecordingProvider):
        def prefetch(self, query: str, *, session_id: str = "") -> str:
            time.sleep(0.5)
            return super().prefetch(query, session_id=session_id)

    example = load("agent_async")
    monkeypatch.setattr(
        example, "Hermes", lambda: Hermes(environ={}, home=home).override(memory_provider=Slow())
    )

    async def both() -> int:
        ticks, talk = 0, asyncio.ensure_future(example.converse(["How do I reach the staging host?"], "s1"))
        while not talk.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await talk
        return ticks

    assert asyncio.run(both()) > 10


@pytest.mark.parametrize("example", ["agent", "agent_async"])
def test_the_guide_shows_the_examples_as_they_are(example: str) -> None:
    """The code in the guide is the code of the example, to the letter."""
    guide = (ROOT / "docs" / "embed.md").read_text()
    code = (ROOT / "examples" / f"{example}.py").read_text()
    assert f"```python\n# examples/{example}.py\n{code}```" in guide
