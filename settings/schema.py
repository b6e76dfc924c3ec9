"""The settings of hermes as frozen values: what each key is called, its type, its default, its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from attrs.validators import ge, gt

from hermes.profiles import Profile
from hermes.secret import Secret

Isolation = Literal["auto", "thread", "process"]


@attrs.frozen
class Timeouts:
    """How long a provider may take, in seconds."""

    prefetch: float = attrs.field(default=3.0, validator=gt(0))
    tool_call: float = attrs.field(default=30.0, validator=gt(0))
    hook: float = attrs.field(default=5.0, validator=gt(0))
    initialize: float = attrs.field(default=15.0, validator=gt(0))
    session_end: float = attrs.field(default=120.0, validator=gt(0))
    shutdown: float = attrs.field(default=10.0, validator=gt(0))


@attrs.frozen
class MemorySettings:
    """``memory:``, the built-in memory and the choice of a provider."""

    provider: str | None = None
    memory_enabled: bool = True
    user_profile_enabled: bool = True
    memory_char_limit: int = attrs.field(default=2200, validator=gt(0))
    user_char_limit: int = attrs.field(default=1375, validator=gt(0))
    write_approval: bool = False
    nudge_interval: int = attrs.field(default=10, validator=ge(0))
    redact: bool = True
    external_prefetch_timeout: float | None = None
    timeouts: Timeouts = attrs.field(factory=Timeouts)
    providers: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """What stands under ``memory.<name>`` for the plugin of that name."""


@attrs.frozen
class JournalSettings:
    """``journal:``, what is still owed to a provider."""

    max_age: float = attrs.field(default=30 * 86400.0, validator=gt(0))
    """Seconds after which an undelivered record becomes a dead letter."""
    max_size: int = attrs.field(default=1 << 30, validator=gt(0))
    """Bytes above which status warns; nothing undelivered is ever deleted."""
    keep_handed_over: float = attrs.field(default=7 * 86400.0, validator=ge(0))
    """Seconds for which a record that was accepted, not confirmed, is kept."""


@attrs.frozen
class PluginSettings:
    """``plugins:``, how plugins run."""

    isolation: Isolation = "auto"
    private_home: bool = False
    disabled: tuple[str, ...] = ()
    by_name: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)


@attrs.frozen
class ContextSettings:
    """``context:``, what happens when a conversation grows too long."""

    engine: str = "compressor"


@attrs.frozen
class ModelSettings:
    """``model:``, the endpoint that talks."""

    base_url: str | None = None
    name: str | None = None
    api_key: Secret | None = None


@attrs.frozen
class DisplaySettings:
    """``display:``, what is shown."""

    memory_notifications: Literal["off", "on", "verbose"] = "on"


@attrs.frozen
class ToolSettings:
    """``tools:``, what is not offered to the model."""

    disabled: tuple[str, ...] = ()


@attrs.frozen
class Settings:
    """Everything one profile is configured with, checked once and never changed."""

    profile: Profile
    memory: MemorySettings = attrs.field(factory=MemorySettings)
    journal: JournalSettings = attrs.field(factory=JournalSettings)
    plugins: PluginSettings = attrs.field(factory=PluginSettings)
    context: ContextSettings = attrs.field(factory=ContextSettings)
    model: ModelSettings = attrs.field(factory=ModelSettings)
    display: DisplaySettings = attrs.field(factory=DisplaySettings)
    tools: ToolSettings = attrs.field(factory=ToolSettings)
    local: Mapping[str, Any] = attrs.field(factory=dict)
    merged: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """The plain merged mapping of all layers, foreign keys included, without secrets."""
