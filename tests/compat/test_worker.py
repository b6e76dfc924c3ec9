"""The host modules in the process of a plugin: what they ask goes through the pipe to the open profile."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.containers import Hermes
from tests.compat.test_model import Endpoint

PLUGIN = """
import importlib, importlib.metadata, json, os
from agent.auxiliary_client import call_llm, extract_content_or_reasoning
from agent.memory_provider import MemoryProvider
from agent.secret_scope import get_secret
from hermes_cli import __version__
from hermes_cli.config import cfg_get, load_config, save_config, save_env_value
from hermes_cli.plugins import get_plugin_manager
from hermes_cli.profiles import get_active_profile_name, list_profiles
from hermes_constants import get_hermes_home, set_hermes_home_override
from plugins.memory import list_memory_provider_names
from tools.registry import tool_error, tool_result


class Asker(MemoryProvider):
    name = "asker"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        get_plugin_manager()._hooks.setdefault("post_llm_call", []).append(lambda **facts: None)

    def get_tool_schemas(self):
        return [{"name": "ask", "description": "Asks the host.", "parameters": {"type": "object"}}]

    def handle_tool_call(self, tool_name, args, **kwargs):
        try:
            return tool_result(answer=getattr(self, args["what"])())
        except Exception as exc:
            return tool_error(exc, kind=type(exc).__name__)

    def where(self):
        names = [profile.name for profile in list_profiles()]
        return [str(get_hermes_home()), get_active_profile_name(), names, "asker" in list_memory_provider_names()]

    def version(self):
        return [__version__, importlib.metadata.version("hermes-agent")]

    def settings(self):
        config = load_config()
        depth = cfg_get(config, "memory", "asker", "depth")
        config["memory"]["asker"]["depth"] = depth + 1
        save_config(config)
        return depth

    def wrong(self):
        config = load_config()
        config["memory"]["memory_char_limit"] = "many"
        save_config(config)

    def secret(self):
        save_env_value("ASKER_KEY", "sk 1")
        return [get_secret("ASKER_KEY"), os.environ["ASKER_KEY"]]

    def model(self):
        return extract_content_or_reasoning(call_llm(messages=[{"role": "user", "content": "hi"}]))

    def elsewhere(self):
        set_hermes_home_override("/somewhere/else")
        return load_config()

    def unknown(self):
        importlib.import_module("gateway.run")


def register(ctx):
    ctx.register_memory_provider(Asker())
"""
CONFIG = """\
memory:
  provider: asker   # in a process of its own
  asker:
    depth: 3
"""
Ask = Callable[[str], Any]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An OpenAI-compatible endpoint on this machine."""
    endpoint = Endpoint()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


@pytest.fixture
def ask(hermes_root: Hermes, hermes_home: Path, endpoint: Endpoint) -> Iterator[Ask]:
    """Asks the plugin in its process, by its tool, what it gets from its host."""
    folder = hermes_home / "plugins" / "asker"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(PLUGIN)
    model = f"model:\n  base_url: {endpoint.url}\n  name: small\n"
    (hermes_home / "config.yaml").write_text(CONFIG + model)
    with hermes_root.open() as me:
        manager = me.memory_manager()
        manager.initialize_all("s1")

        def answer(what: str) -> Any:
            return json.loads(manager.handle_tool_call("ask", {"what": what}))

        yield answer


def test_a_plugin_in_its_process_reaches_its_profile(ask: Ask, hermes_home: Path, endpoint: Endpoint) -> None:
    """Paths, version, settings, secrets and the model are those of the open profile, and a write is one line."""
    assert ask("where") == {"answer": [str(hermes_home), "default", ["default"], True]}
    assert ask("version") == {"answer": ["0.22.0", "0.22.0"]}
    assert [ask("settings"), ask("settings")] == [{"answer": 3}, {"answer": 4}]
    assert (hermes_home / "config.yaml").read_text().startswith(CONFIG.replace("depth: 3", "depth: 5"))
    assert ask("secret") == {"answer": ["sk 1", "sk 1"]}
    assert (hermes_home / ".env").read_text() == "ASKER_KEY='sk 1'\n"
    assert ask("model") == {"answer": "hello"}
    assert endpoint.requests[0][2]["model"] == "small"
    assert not [name for name in sys.modules if name.partition(".")[0] in ("agent", "hermes_cli")]


def test_what_the_host_refuses_reaches_the_plugin(ask: Ask, hermes_home: Path) -> None:
    """A refusal of the host is an error in the plugin, with its reason; nothing is written, nothing is hung."""
    before = (hermes_home / "config.yaml").read_text()
    assert "memory_char_limit" in ask("wrong")["error"]
    assert (hermes_home / "config.yaml").read_text() == before
    assert "/somewhere/else cannot be reached" in ask("elsewhere")["error"]
    unknown = ask("unknown")
    assert unknown["kind"] == "ModuleNotFoundError"
    assert "gateway.run is a module of another host" in unknown["error"]


def test_a_hook_that_was_put_into_the_manager_is_known(ask: Ask, hermes_root: Hermes) -> None:
    """What a plugin appends to the manager's hooks when it starts is among its hooks from then on."""
    with hermes_root.open() as me:
        provider: Any = me.memory_provider()
        provider.initialize("s2", hermes_home=str(me.paths().home), platform="cli")
        assert "post_llm_call" in provider.hook_names
        provider.shutdown()
