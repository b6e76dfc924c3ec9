"""Running the plugins of one open profile: here, here with the profile's environment, or in a process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from hermes.errors import ProfileBusy, ProviderUnavailable
from hermes.memory.lanes import Limits, LimitSet
from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import Llm, Registered, RegistrationContext
from hermes.plugin_host.hooks import Here, Hooks, Source
from hermes.plugin_host.loading import load
from hermes.plugin_host.plugin import BUNDLED, CONTEXT_ENGINE, MEMORY, Plugin

if TYPE_CHECKING:
    from hermes.plugin_host.host import Host

AUTO, THREAD, PROCESS = "auto", "thread", "process"


@attrs.frozen
class Surroundings:
    """The profile that plugins run for, as they see it."""

    profile: str
    home: Path
    host: Callable[[], Host]
    """Makes what they may ask; called when one is loaded, or asks."""
    dotenv: Callable[[], Mapping[str, str]] = attrs.field(default=dict, repr=False)
    """Reads the variables of the profile's ``.env``; called when one is loaded that is to see them."""
    environ: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    """The environment that the program was started with."""
    limits: Callable[[str], LimitSet] = attrs.field(default=lambda _: Limits())
    """How long the calls into a plugin may take, by its name."""
    isolation: str = AUTO
    private_home: bool = False
    by_name: Mapping[str, Mapping[Any, Any]] = attrs.field(factory=dict, repr=False)
    """Settings of single plugins, by name."""

    def isolation_of(self, plugin: Plugin) -> str:
        """``thread`` or ``process``. Raises ``ProviderUnavailable`` for a setting that is neither."""
        asked = self.by_name.get(plugin.name, {}).get("isolation", self.isolation)
        if asked == AUTO:
            return THREAD if plugin.source == BUNDLED else PROCESS
        if asked not in (THREAD, PROCESS):
            raise ProviderUnavailable(
                plugin.name,
                f"plugins.{plugin.name}.isolation is {asked!r}, expected {AUTO}, {THREAD} or {PROCESS}",
                next_step=f"hermes config unset plugins.{plugin.name}.isolation",
            )
        return str(asked)


class Runner:
    """Loads plugins and has what they run in; ``close`` gives it back.

    Everything here raises ``loading.LoadFailed`` for a plugin that does not load.
    """

    def __init__(self, surroundings: Surroundings, log: logging.Logger | None = None) -> None:
        self.hooks = Hooks(log)
        self._around = surroundings
        self._log = log or logging.getLogger("hermes.memory")
        self._lock = threading.Lock()
        self._ending = ExitStack()
        self._prepared = False
        self.registered: dict[str, Registered] = {}
        """What each plugin has registered when it was last loaded."""

    def isolation_of(self, plugin: Plugin) -> str:
        """Where *plugin* runs: ``thread`` (here) or ``process``. Raises ``ProviderUnavailable``."""
        return THREAD if plugin.kind == CONTEXT_ENGINE else self._around.isolation_of(plugin)

    def provider(self, plugin: Plugin) -> MemoryProvider:
        """The memory provider of *plugin*, not started.

        Raises ``ProfileBusy`` where it is to run here and another profile has the environment.
        """
        if self._around.isolation_of(plugin) == PROCESS:
            return self._in_process(plugin)
        provider: MemoryProvider = self._here(plugin, MEMORY).memory_provider
        return provider

    def engine(self, plugin: Plugin, ask: Callable[[Any], str] | None = None) -> Any:
        """The context engine of *plugin*, made anew; it always runs here. *ask* has a model answer messages."""
        llm = None if ask is None else Llm(lambda messages, **_: _completion(ask(messages)))
        return self._here(plugin, CONTEXT_ENGINE, llm).context_engine

    def close(self) -> None:
        """End the processes, take the profile's environment off this one again, and fire no more hooks."""
        self.hooks.close()
        self._ending.close()

    def _here(self, plugin: Plugin, kind: str, llm: Llm | None = None) -> Registered:
        ctx = RegistrationContext(plugin.name, _Late(self._around.host), plugin.manifest.as_dict(), llm=llm)
        if plugin.source != BUNDLED:
            self._prepare(ctx.registered)
        load(attrs.evolve(plugin, kind=kind).spec(), ctx)
        self._loaded(plugin, ctx.registered, Here(ctx.registered))
        return ctx.registered

    def _prepare(self, registered: Registered) -> None:
        """Put the profile's variables into the environment and the host's modules within reach, once."""
        from hermes.compat import finder
        from hermes.overlay import EnvironmentLease

        with self._lock:
            if self._prepared:
                return
            around = self._around
            with ExitStack() as borrowed:
                borrowed.enter_context(EnvironmentLease(around.profile, around.home, around.dotenv()))
                try:
                    finder.install(around.host(), registered)
                except ProfileBusy as exc:
                    if exc.profile != around.profile:  # else this profile is open twice: the lease says so
                        raise
                else:
                    borrowed.callback(finder.uninstall)
                self._ending.push(borrowed.pop_all())
            self._prepared = True

    def _in_process(self, plugin: Plugin) -> MemoryProvider:
        from hermes.plugin_host.worker.opening import open_worker
        from hermes.plugin_host.worker.provider import WorkerProvider

        around = self._around
        own = around.by_name.get(plugin.name, {})
        worker = open_worker(
            attrs.evolve(plugin, kind=MEMORY).spec(),
            plugin.manifest.as_dict(),
            profile=around.profile,
            home=around.home,
            dotenv=around.dotenv(),
            environ=around.environ,
            host=around.host(),
            limits=around.limits(plugin.name),
            private_home=own.get("private_home", around.private_home) is True,
        )
        self._ending.callback(worker.close, worker.limits.shutdown)
        provider = WorkerProvider(worker)
        self._loaded(plugin, provider.registered, provider)
        return provider

    def _loaded(self, plugin: Plugin, registered: Registered, hooks: Source) -> None:
        self.registered[plugin.name] = registered
        if registered.problem:
            self._log.warning("plugin %r: %s", plugin.name, registered.problem)
        if registered.hooks:
            self.hooks.add(plugin.name, hooks)


class _Late:
    """A host that is made when it is first asked."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


def _completion(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}
