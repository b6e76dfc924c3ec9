"""The plugins of one profile: which there are, which one a name means, and that one loaded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from hermes.errors import ProviderUnavailable
from hermes.plugin_host.context import Registered
from hermes.plugin_host.discovery import CONTEXT_ENGINE, MEMORY, PLAIN_NAME, Places, Plugin
from hermes.plugin_host.failures import Failure, Failures
from hermes.plugin_host.hooks import Hooks
from hermes.plugin_host.loading import LoadFailed

if TYPE_CHECKING:
    from hermes.memory.provider import MemoryProvider
    from hermes.paths import ProfilePaths
    from hermes.plugin_host.running import Runner

_SETTING = {MEMORY: "memory.provider", CONTEXT_ENGINE: "context.engine"}
_WHAT = {MEMORY: "memory provider", CONTEXT_ENGINE: "context engine"}
_FALLBACK = {MEMORY: "local", CONTEXT_ENGINE: "compressor"}


@attrs.define(slots=False, eq=False)
class Catalog:
    """The plugins that a profile can choose from; without *paths*, those that are there for every profile.

    *runner* is what loads them; a catalog without one can only be looked at.
    """

    paths: ProfilePaths | None = None
    disabled: Collection[str] = ()
    runner: Runner | None = None
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("hermes.memory"))

    _given: list[tuple[Any, str]] = attrs.field(factory=list, init=False, repr=False)

    @cached_property
    def all(self) -> tuple[Plugin, ...]:
        """Every plugin that is installed, found now; those that cannot be loaded too."""
        return self._places.all()

    @property
    def memory(self) -> dict[str, Plugin]:
        """Memory providers by name."""
        return self._of(MEMORY)

    @property
    def context_engines(self) -> dict[str, Plugin]:
        """Context engines by name."""
        return self._of(CONTEXT_ENGINE)

    @cached_property
    def hooks(self) -> Hooks:
        """The hooks of the plugins that were loaded."""
        return self.runner.hooks if self.runner else Hooks(self.log)

    @property
    def failures(self) -> Mapping[str, Failure]:
        """What did not load when it was last tried, by name."""
        return self._failures.all() if self._failures else {}

    def find(self, name: str, kind: str = MEMORY) -> Plugin:
        """The plugin that *name* means. Raises ``ProviderUnavailable`` with the reason why it cannot be chosen:

        the name is no plain name, nothing is called so, it is disabled, or it is broken as it lies there.
        """
        if not PLAIN_NAME.fullmatch(name):
            raise self._refusal(name, kind, f"a {_WHAT[kind]} is chosen by its plain name, never by a path")
        if name in self.disabled:
            raise self._refusal(
                name, kind, "it is listed in plugins.disabled", f"hermes plugins enable {name}"
            )
        plugin = self._places.find(name, kind)
        if plugin is None:
            import difflib  # takes a while to import, and is wanted for mistakes only

            near = difflib.get_close_matches(name, self._of(kind), n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            step = f"hermes config set {_SETTING[kind]} {near[0] if near else _FALLBACK[kind]}"
            raise self._refusal(name, kind, f"no plugin of that name is installed{hint}", step)
        if plugin.problem:
            raise self._refusal(
                name, kind, f"{plugin.where}: {plugin.problem}", f"hermes plugins show {name}"
            )
        return plugin

    def memory_provider(self, name: str) -> MemoryProvider:
        """The memory provider *name*, not started. Raises ``ProviderUnavailable`` with the reason."""
        plugin = self.find(name)
        runner = self._needed_runner(name)
        provider: MemoryProvider = self._loaded(plugin, MEMORY, lambda: runner.provider(plugin))
        self._given.append((provider, name))
        return provider

    def name_of(self, provider: Any) -> str:
        """The name that *provider* was chosen by; empty for one that was not loaded here.

        It may call itself otherwise, and even as another plugin is called.
        """
        return next((name for given, name in self._given if given is provider), "")

    def context_engine(self, name: str, ask: Callable[[list[dict[str, Any]]], str] | None = None) -> Any:
        """A context engine of its own of the plugin *name*; *ask* has the model answer messages.

        Raises ``ProviderUnavailable`` with the reason.
        """
        plugin = self.find(name, CONTEXT_ENGINE)
        runner = self._needed_runner(name)
        engine = self._loaded(plugin, CONTEXT_ENGINE, lambda: runner.engine(plugin, ask))
        if engine is None:
            raise self._refusal(name, CONTEXT_ENGINE, "its register(ctx) registers no context engine")
        return engine

    def registered(self, name: str) -> Registered:
        """What the plugin *name* registered when it was loaded here; empty where it was not."""
        known = self.runner.registered if self.runner else {}
        return known.get(name) or Registered()

    def close(self) -> None:
        """End what the plugins run in."""
        if self.runner is not None:
            self.runner.close()

    # -- inside ------------------------------------------------------------------------------------------

    @property
    def _places(self) -> Places:
        if self.paths is None:
            return Places()
        return Places(self.paths.plugins, self.paths.root / "plugins")

    @property
    def _failures(self) -> Failures | None:
        return Failures(self.paths.logs / "plugins.json") if self.paths else None

    def _of(self, kind: str) -> dict[str, Plugin]:
        return {plugin.name: plugin for plugin in self.all if plugin.kind == kind}

    def _needed_runner(self, name: str) -> Runner:
        if self.runner is None:
            raise ProviderUnavailable(name, "no profile is open to run it for")
        return self.runner

    def _loaded(self, plugin: Plugin, kind: str, run: Callable[[], Any]) -> Any:
        """What *run* gives. A failure is kept for lists, and told to the log once, as a warning."""
        try:
            result = run()
        except LoadFailed as exc:
            failure = self.report(plugin.name, Failure(exc.message, exc.file, exc.line))
            step = f"hermes plugins show {plugin.name}"
            raise self._refusal(plugin.name, kind, f"it does not load: {failure}", step) from exc
        if self._failures:
            self._failures.forget(plugin.name)
        return result

    def _refusal(self, name: str, kind: str, reason: str, next_step: str = "") -> ProviderUnavailable:
        return ProviderUnavailable(name, reason, next_step=next_step, what=_WHAT[kind])

    def report(self, name: str, failure: Failure) -> Failure:
        """Keep and log that the plugin *name* did not load; *failure* without the secrets it may quote."""
        from hermes.memory.redact import redact_text

        failure = attrs.evolve(failure, message=redact_text(failure.message))
        if self._failures is None or self._failures.note(name, failure):
            self.log.warning(
                "plugin %r does not load: %s",
                name,
                failure.message,
                extra={"plugin": name, "file": failure.file, "line": failure.line},
            )
        return failure
