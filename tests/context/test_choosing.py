"""Which context engine a conversation gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.containers import Hermes

ENGINE = """
from hermes.context.engine import ContextEngine

class LastOnly(ContextEngine):
    name = "last-only"
    def update_from_response(self, usage): pass
    def should_compress(self, prompt_tokens=None): return False
    def compress(self, messages, **kwargs): return messages[-1:]

def register(ctx):
    ctx.register_context_engine(LastOnly())
"""


def root(home: Path, engine: str) -> Hermes:
    """A root whose settings name *engine*."""
    settings = [f"context.engine={engine}", "model.base_url=http://127.0.0.1:9/v1", "model.name=m"]
    return Hermes(environ={"HERMES_HOME": str(home)}, settings=settings)


def install(home: Path, folder: str, code: str = ENGINE) -> None:
    """Put an engine into the profile."""
    path = home / "plugins" / folder
    path.mkdir(parents=True)
    (path / "__init__.py").write_text(code)
    (path / "plugin.yaml").write_text(f"name: {path.name}\nkind: context_engine\ndescription: A test.\n")


def test_the_built_in_engine_is_the_default(home: Path) -> None:
    """Without a setting it is the compressor, and each conversation gets one of its own."""
    with root(home, "compressor").open() as me:
        one, other = me.context_engine(), me.context_engine()
        assert one.name == "compressor"
        assert one is not other
        one.update_model("m", 1000)
        assert other.threshold_tokens == 0


@pytest.mark.parametrize("folder", ["context_engine/last-only", "last-only"])
def test_an_engine_of_the_profile_is_used(home: Path, folder: str) -> None:
    """A plugin in either place is found, and no warning is given."""
    install(home, folder)
    with root(home, "last-only").open() as me:
        engines = me.context_engine(), me.context_engine()
        assert [engine.name for engine in engines] == ["last-only"] * 2
        assert engines[0] is not engines[1]
    log = home / "logs" / "memory.log"
    assert not log.exists() or "last-only" not in log.read_text()


@pytest.mark.parametrize(
    ("code", "reason"),
    [(None, "no plugin of that name"), ("raise RuntimeError('broken here')", "broken here"), ("", "")],
)
def test_an_engine_that_cannot_be_had_is_told_of_and_the_built_in_one_used(
    home: Path, code: str | None, reason: str
) -> None:
    """Unknown, broken or empty: one warning with the reason, and the compressor."""
    if code is not None:
        install(home, "context_engine/odd", code)
    with root(home, "odd").open() as me:
        assert me.context_engine().name == "compressor"
    log = (home / "logs" / "memory.log").read_text()
    assert "compressor is used" in log
    assert reason in log
