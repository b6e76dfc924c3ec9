"""The settings of hermes as frozen values: what each key is called, its type, its default, its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs

from hermes.errors import Problem
from hermes.profiles import Profile
from hermes.secret import Secret

Isolation = Literal["auto", "thread", "process"]
Duration = Annotated[float, "duration"]
"""Seconds; in a file also text such as ``90s``, ``15m``, ``12h``, ``30d``."""
Size = Annotated[int, "size"]
"""Bytes; in a file also text such as ``500MB`` or ``1GiB``."""

NO_PROVIDER = frozenset({"", "none", "builtin"})
"""What ``memory.provider`` says when only the built-in memory is wanted."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


def _plain_name(_: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    """Refuse a path, or anything else that is no name, before something is looked up by it."""
    if value and (not PLAIN_NAME.fullmatch(value) or ".." in value):
        raise ValueError(f"{attribute.name} must be the plain name of a plugin, never a path")


def _positive(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if value <= 0:
        raise ValueError(f"{attribute.name} must be greater than 0")


def _not_negative(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if value < 0:
        raise ValueError(f"{attribute.name} must be 0 or greater")


@attrs.frozen
class Timeouts:
    """How long a provider may take, in seconds."""

    prefetch: Duration = attrs.field(default=3.0, validator=_positive)
    tool_call: Duration = attrs.field(default=30.0, validator=_positive)
    hook: Duration = attrs.field(default=5.0, validator=_positive)
    initialize: Duration = attrs.field(default=15.0, validator=_positive)
    session_end: Duration = attrs.field(default=120.0, validator=_positive)
    shutdown: Duration = attrs.field(default=10.0, validator=_positive)


@attrs.frozen
class MemorySettings:
    """``memory:``, the built-in memory and the choice of a provider."""

    provider: str | None = attrs.field(default=None, validator=_plain_name)
    memory_enabled: bool = True
    user_profile_enabled: bool = True
    memory_char_limit: int = attrs.field(default=2200, validator=_positive)
    user_char_limit: int = attrs.field(default=1375, validator=_positive)
    write_approval: bool = False
    nudge_interval: int = attrs.field(default=10, validator=_not_negative)
    redact: bool = True
    timeouts: Timeouts = attrs.field(factory=Timeouts)
    """``memory.external_prefetch_timeout`` of existing homes is read as ``timeouts.prefetch``."""
    providers: Mapping[str, Mapping[Any, Any]] = attrs.field(factory=dict, repr=False)
    """What stands under ``memory.<name>`` for the plugin of that name."""
    provider_timeouts: Mapping[str, Timeouts] = attrs.field(factory=dict, repr=False)
    """``timeouts`` with what ``memory.<name>.timeouts`` says otherwise, for the names that say something."""

    def timeouts_of(self, provider: str) -> Timeouts:
        """The limits that hold for *provider*."""
        return self.provider_timeouts.get(provider, self.timeouts)


@attrs.frozen
class JournalSettings:
    """``journal:``, what is still owed to a provider."""

    max_age: Duration = attrs.field(default=30 * 86400.0, validator=_positive)
    """Seconds after which an undelivered record becomes a dead letter."""
    max_size: Size = attrs.field(default=1 << 30, validator=_positive)
    """Bytes above which status warns; nothing undelivered is ever deleted."""
    keep_handed_over: Duration = attrs.field(default=7 * 86400.0, validator=_not_negative)
    """Seconds from the handover for which a record that was accepted is kept at least, confirmed or not."""


@attrs.frozen
class PluginSettings:
    """``plugins:``, how plugins run."""

    isolation: Isolation = "auto"
    private_home: bool = False
    disabled: tuple[str, ...] = ()
    by_name: Mapping[str, Mapping[Any, Any]] = attrs.field(factory=dict, repr=False)
    """What stands under ``plugins.<name>`` for the plugin of that name."""


@attrs.frozen
class ContextSettings:
    """``context:``, what happens when a conversation grows too long or is left alone."""

    engine: str = attrs.field(default="compressor", validator=_plain_name)
    idle: Duration = attrs.field(default=86400.0, validator=_not_negative)
    """Seconds without a word after which a session is ended and the next words begin another; 0 for never."""


@attrs.frozen
class ModelSettings:
    """``model:``, the endpoint that talks."""

    base_url: str | None = None
    name: str | None = None
    api_key: Secret | None = None
    """Without it, ``OPENAI_API_KEY`` of the profile's ``.env`` is used."""
    context_length: int = attrs.field(default=128_000, validator=_positive)
    """Tokens that the model takes."""


@attrs.frozen
class DisplaySettings:
    """``display:``, what is shown."""

    memory_notifications: Literal["off", "on", "verbose"] = "on"


@attrs.frozen
class ToolSettings:
    """``tools:``, what is not offered to the model."""

    disabled: tuple[str, ...] = ()
    """``disabled_toolsets`` of existing homes is read too."""


@attrs.frozen
class Retention:
    """``local.retention:``, what the local provider lets go by itself; 0 for nothing. Facts stay."""

    max_age: Duration = attrs.field(default=0.0, validator=_not_negative)
    max_turns: int = attrs.field(default=0, validator=_not_negative)
    max_bytes: Size = attrs.field(default=0, validator=_not_negative)


@attrs.frozen
class LocalSettings:
    """``local:``, the local provider."""

    scope: Literal["profile", "project"] = "profile"
    """``project``: a memory for each repository or folder that is worked in, beside that of the profile."""
    tier: Literal["auto", "lexical", "semantic", "late-interaction"] = "auto"
    """How is searched: by words, by meaning too, or token by token; ``auto`` is the most that is installed."""
    model: str | None = None
    """The name of an installed model, a folder, or the model's name at ``endpoint``."""
    endpoint: str | None = None
    """The base URL of an OpenAI-compatible embeddings endpoint."""
    endpoint_key: str | None = None
    """The name of the secret that holds its key."""
    vector_memory: Size = attrs.field(default=256 << 20, validator=_positive)
    """Vectors that are kept in memory between questions."""
    retention: Retention = attrs.field(factory=Retention)


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
    local: LocalSettings = attrs.field(factory=LocalSettings)
    configured: bool = False
    """Whether the profile has a ``config.yaml``."""
    merged: Mapping[Any, Any] = attrs.field(factory=dict, repr=False)
    """The plain merged mapping of all layers, foreign keys included, without the keys typed as secret."""
    warnings: tuple[Problem, ...] = attrs.field(default=(), repr=False)
    """Keys of ours that nothing reads, most likely mistyped. They stop nothing."""


SECTIONS: Mapping[str, type[Any]] = {
    "memory": MemorySettings,
    "journal": JournalSettings,
    "plugins": PluginSettings,
    "context": ContextSettings,
    "model": ModelSettings,
    "display": DisplaySettings,
    "tools": ToolSettings,
    "local": LocalSettings,
}
"""The sections that are ours, with their schema; everything else in a file is carried as it is."""

OWN = tuple(SECTIONS)


def active_provider(settings: Settings) -> str | None:
    """The name of the external memory provider that is switched on, or None.

    A profile without a ``config.yaml`` uses ``local``; one that has the file says what it wants.
    """
    name = settings.memory.provider
    if name is None:
        return None if settings.configured else "local"
    return None if name.lower() in NO_PROVIDER else name
