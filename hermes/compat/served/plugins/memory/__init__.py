"""The memory providers that can be chosen."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from hermes.compat import current
from hermes.plugin_host import tree
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.loading import LoadFailed, load

_log = logging.getLogger(__name__)


def list_memory_provider_names() -> list[str]:
    """Their names; nothing is imported."""
    return [plugin["name"] for plugin in _all()]


def find_provider_dir(name: str) -> Path | None:
    """The folder of the provider *name*; None where it is not installed, or its folder is not known."""
    plugin = _named(name)
    return Path(plugin["path"]) if plugin and plugin["path"] else None


def load_memory_provider(name: str) -> Any | None:
    """A new provider *name*, not started; None where there is none, or it does not load: the log says why."""
    plugin = _named(name)
    if plugin is None:
        return None
    context = RegistrationContext(name, current.host())
    try:
        load(plugin["spec"], context)
    except LoadFailed as exc:
        _log.warning("memory provider %r does not load: %s", name, exc)
        return None
    return context.registered.memory_provider


def discover_memory_providers() -> list[tuple[str, str, bool]]:
    """Name, description and whether it is available, of every provider. Each is imported for that."""
    return [(plugin["name"], plugin["description"], _is_available(plugin["name"])) for plugin in _all()]


def discover_plugin_cli_commands() -> list[dict[str, Any]]:
    """The command tree of the active provider, one or none: ``name``, ``help``, ``setup_fn``, ``handler_fn``.

    Its ``cli.py`` is imported for that. Raises what that raises.
    """
    section = current.profile().load_config().get("memory")
    name = str(section.get("provider") or "") if isinstance(section, dict) else ""
    plugin = _named(name)
    if plugin is None or tree.file_of(plugin["spec"]) is None:
        return []
    module = tree.load(plugin["spec"])
    return [
        {
            "name": name,
            "plugin": name,
            "help": plugin["description"],
            "description": plugin["description"],
            "setup_fn": module.register_cli,
            "handler_fn": getattr(module, f"{name.replace('-', '_')}_command", None),
        }
    ]


def _is_available(name: str) -> bool:
    provider = load_memory_provider(name)
    try:
        return provider is not None and bool(provider.is_available())
    except Exception:  # noqa: BLE001 - whatever a provider raises, it is not available
        _log.warning("memory provider %r cannot say whether it is available", name, exc_info=True)
        return False


def _all() -> list[dict[str, Any]]:
    return current.profile().plugins("memory")


def _named(name: str) -> dict[str, Any] | None:
    return next((plugin for plugin in _all() if plugin["name"] == name), None)
