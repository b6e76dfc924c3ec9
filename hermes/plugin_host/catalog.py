"""Which plugins there are, by kind and name; listing them imports none."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection
from functools import cached_property
from pathlib import Path

import attrs

from hermes.errors import HermesError, ProviderUnavailable
from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.manifest import Manifest, read

MEMORY = "memory"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")


@attrs.frozen
class Plugin:
    """One plugin that was found, not loaded."""

    name: str
    kind: str
    source: str
    path: Path

    @property
    def manifest(self) -> Manifest:
        """What its ``plugin.yaml`` says, read now."""
        return read(self.path / "plugin.yaml")


@attrs.define(slots=False)
class Catalog:
    """The plugins that a profile can choose from."""

    disabled: Collection[str] = ()

    @cached_property
    def memory(self) -> dict[str, Plugin]:
        """Memory providers by name."""
        import hermes.plugins.memory as bundled

        folders = (Path(entry) for entry in bundled.__path__)
        return {
            folder.name: Plugin(folder.name, MEMORY, "bundled", folder)
            for root in folders
            for folder in sorted(root.iterdir())
            if (folder / "plugin.yaml").is_file()
        }

    def memory_provider(self, name: str) -> MemoryProvider:
        """Load the memory provider *name* and return what it registered.

        Raises ``ProviderUnavailable`` with the reason: the name is no plain name, nothing is called so, it is
        disabled, its import fails, or it registers no provider.
        """
        plugin = self._chosen(name)
        context = RegistrationContext(plugin.name)
        try:
            module = importlib.import_module(f"hermes.plugins.memory.{plugin.name}")
            module.register(context)
        except HermesError:
            raise
        except Exception as exc:
            raise ProviderUnavailable(name, f"it does not load: {type(exc).__name__}: {exc}") from exc
        if context.memory_provider is None:
            raise ProviderUnavailable(name, "its register(ctx) registered no memory provider")
        return context.memory_provider

    def _chosen(self, name: str) -> Plugin:
        if not _PLAIN_NAME.match(name):
            raise ProviderUnavailable(name, "a provider is chosen by its plain name, never by a path")
        if name in self.disabled:
            raise ProviderUnavailable(
                name, "it is listed in plugins.disabled", next_step="hermes config unset plugins.disabled"
            )
        if name not in self.memory:
            import difflib

            near = difflib.get_close_matches(name, self.memory, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ProviderUnavailable(
                name,
                f"no plugin of that name is installed{hint}",
                next_step=f"hermes config set memory.provider {near[0] if near else 'local'}",
            )
        return self.memory[name]
