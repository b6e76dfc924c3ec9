"""What is remembered and in what state it is: found out by looking, without starting or creating anything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from hermes.errors import HermesError, ProviderUnavailable
from hermes.memory.lanes import Lane
from hermes.memory.provider import MemoryProvider
from hermes.profiles import Profile

if TYPE_CHECKING:
    from hermes.memory.builtin import BuiltinMemory, Usage
    from hermes.memory.journal import JournalStats

State = Literal["off", "ready", "unavailable", "failed"]


@attrs.frozen
class ProviderStatus:
    """The chosen memory provider, as it would answer now."""

    name: str | None
    state: State
    reason: str = ""
    """Why it cannot be used."""
    next_step: str = ""
    details: Mapping[str, Any] = attrs.field(factory=dict)
    """What the provider says of itself and of what it stores."""


@attrs.frozen
class MemoryStatus:
    """One profile's memory at one moment. Times are Unix seconds."""

    profile: Profile
    builtin: tuple[Usage, ...]
    warnings: tuple[str, ...]
    pending: int
    provider: ProviderStatus
    journal: JournalStats | None
    """None where nothing was ever owed to a provider."""

    @property
    def last_write(self) -> float | None:
        """When the provider last took something."""
        return self._last("sync_turn", "sync_turns", "on_memory_write", "on_session_end")

    @property
    def last_recall(self) -> float | None:
        """When the provider last answered a recall."""
        return self._last("prefetch")

    def _last(self, *hooks: str) -> float | None:
        known = self.journal.hooks.get(self.provider.name or "", {}) if self.journal else {}
        return max((s.last_ok for name in hooks if (s := known.get(name)) and s.last_ok), default=None)


def look(
    profile: Profile,
    *,
    builtin: BuiltinMemory,
    provider_name: str | None,
    choose: Callable[[], MemoryProvider | None],
    installed: Collection[str],
    config: Mapping[str, Any],
    limit: float,
) -> MemoryStatus:
    """The status of *profile*: nothing is started for good, and nothing below its home is created.

    *choose* gives the provider called *provider_name*, *installed* names those that could be chosen, *config*
    is what the settings hold for it, and *limit* is what its start may take, in seconds.
    """
    return MemoryStatus(
        profile=profile,
        builtin=tuple(builtin.usage()),
        warnings=tuple(builtin.warnings()),
        pending=builtin.waiting(),
        provider=_off(profile, installed)
        if provider_name is None
        else _provider(profile, provider_name, choose, config, limit),
        journal=_journal(profile),
    )


def _journal(profile: Profile) -> JournalStats | None:
    if not profile.paths.journal.exists():
        return None
    from hermes.memory.journal.view import peek

    with peek(profile.paths.journal) as view:
        return view.stats() if view is not None else None


def _off(profile: Profile, installed: Collection[str]) -> ProviderStatus:
    """No provider is chosen; one that has settings or data in this home is the one to suggest."""
    here = [n for n in installed if (profile.home / f"{n}.json").exists() or (profile.home / n).exists()]
    reason = f"{here[0]} has data here and is not chosen" if here else ""
    return ProviderStatus(
        None, "off", reason, f"hermes config set memory.provider {here[0] if here else 'local'}"
    )


def _provider(
    profile: Profile,
    name: str,
    choose: Callable[[], MemoryProvider | None],
    config: Mapping[str, Any],
    limit: float,
) -> ProviderStatus:
    try:
        provider = choose()
    except ProviderUnavailable as exc:
        return ProviderStatus(name, "unavailable", exc.reason, exc.next_step)
    if provider is None:
        return ProviderStatus(None, "off")
    lane = Lane(f"status-{name}")
    try:
        if not lane.call("is_available", provider.is_available, limit=limit):
            say = getattr(provider, "unavailable_reason", None) or str
            reason = lane.call("unavailable_reason", say, limit=limit)
            return ProviderStatus(name, "unavailable", reason or "it says that it is not set up")
        details = lane.call("status", _details, (provider, profile, dict(config)), limit=limit)
    except HermesError as exc:
        return ProviderStatus(name, "failed", str(exc), exc.next_step)
    except Exception as exc:  # noqa: BLE001 - whatever a provider raises is its status
        return ProviderStatus(name, "failed", f"{type(exc).__name__}: {exc}", "hermes memory doctor")
    finally:
        lane.close()
    return ProviderStatus(name, "ready", details=details)


def _details(provider: MemoryProvider, profile: Profile, config: dict[str, Any]) -> dict[str, Any]:
    """What it says of itself. A provider without our base class may lack any member but the four needed."""
    start = getattr(provider, "initialize_for_inspection", None) or provider.initialize
    start(
        "status",
        hermes_home=str(profile.home),
        platform="cli",
        agent_identity=profile.name,
        agent_context="primary",
    )
    try:
        describe = getattr(provider, "get_status_config", None)
        return dict(describe(config) if describe else MemoryProvider.get_status_config(provider, config))
    finally:
        if end := getattr(provider, "shutdown", None):
            end()
