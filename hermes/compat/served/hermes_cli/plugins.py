"""The plugin that runs in this process, as plugins of others see the manager of all plugins."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from hermes.compat import current
from hermes.plugin_host.context import FIRED, Registered, RegistrationContext

_log = logging.getLogger(__name__)

VALID_HOOKS = {
    *FIRED,
    "on_session_finalize",
    "on_session_reset",
    "post_api_request",
    "pre_api_request",
    "pre_gateway_dispatch",
    "pre_verify",
    "subagent_stop",
    "transform_llm_output",
    "transform_terminal_output",
    "transform_tool_result",
}
"""The hooks that may be registered. Those of ``FIRED`` are fired here; the others are kept and shown."""


@dataclass
class PluginManifest:
    """What a plugin says of itself."""

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    requires_env: list[Any] = field(default_factory=list)
    provides_tools: list[str] = field(default_factory=list)
    provides_hooks: list[str] = field(default_factory=list)
    source: str = ""
    path: str | None = None
    kind: str = "standalone"
    key: str = ""


class PluginManager:
    """What the plugin of this process has registered."""

    @property
    def registered(self) -> Registered:
        """Where everything registered goes: that of the plugin that runs here."""
        return current.serving().registered

    @property
    def _hooks(self) -> dict[str, list[Callable[..., Any]]]:
        """The callbacks by hook; what is put in is fired like what is registered."""
        return self.registered.hooks

    def invoke_hook(self, hook_name: str, **kwargs: Any) -> list[Any]:
        """Call every callback of *hook_name*; the answers that are not None. One that raises is logged."""
        answers = []
        for callback in list(self._hooks.get(hook_name, ())):
            try:
                answer = callback(**kwargs)
            except Exception:  # noqa: BLE001 - a callback of a plugin: the others are still called
                _log.warning("a callback of %s failed", hook_name, exc_info=True)
                continue
            if answer is not None:
                answers.append(answer)
        return answers

    def list_plugins(self) -> list[dict[str, Any]]:
        """The memory providers that can be chosen."""
        return current.host().plugins("memory")


class PluginContext(RegistrationContext):
    """What ``register(ctx)`` is given, for a plugin that makes one itself."""

    def __init__(self, manifest: PluginManifest, manager: PluginManager) -> None:
        super().__init__(
            manifest.name, current.host(), {k: v for k, v in asdict(manifest).items() if k != "name"}
        )
        self.registered = manager.registered
        self._manager = manager


_plugin_manager = PluginManager()


def get_plugin_manager() -> PluginManager:
    """The one manager of this process."""
    return _plugin_manager


def invoke_hook(hook_name: str, **kwargs: Any) -> list[Any]:
    """``invoke_hook`` of that manager."""
    return _plugin_manager.invoke_hook(hook_name, **kwargs)
