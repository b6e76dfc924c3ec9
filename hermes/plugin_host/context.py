"""What a plugin's ``register(ctx)`` is given."""

from __future__ import annotations

from hermes.errors import ProviderUnavailable
from hermes.memory.provider import MemoryProvider


class RegistrationContext:
    """Takes what a plugin registers; one memory provider per plugin."""

    def __init__(self, plugin_name: str) -> None:
        self.plugin_name = plugin_name
        self.memory_provider: MemoryProvider | None = None

    def register_memory_provider(self, provider: MemoryProvider) -> None:
        """Offer *provider*. Raises ``ProviderUnavailable`` for a second one from the same plugin."""
        if self.memory_provider is not None:
            raise ProviderUnavailable(self.plugin_name, "it registers two memory providers")
        self.memory_provider = provider
