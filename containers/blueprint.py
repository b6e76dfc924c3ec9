"""The blueprint of one profile: which parts there are and what each is made of.

Imported when a profile is opened, never before: dependency-injector takes a while to import.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.errors import ProviderUnavailable
from hermes.paths import ProfilePaths
from hermes.quiet import importing
from hermes.settings import Settings, active_provider, load

with importing("dependency_injector"):
    from dependency_injector import containers, providers

if TYPE_CHECKING:
    from hermes.containers.root import OpenProfile
    from hermes.context.engine import ContextEngine
    from hermes.memory.builtin import BuiltinMemoryProvider
    from hermes.memory.journal import Journal
    from hermes.memory.manager import MemoryManager
    from hermes.memory.provider import MemoryProvider
    from hermes.model.client import Model
    from hermes.plugin_host import Catalog
    from hermes.plugin_host.host import Host
    from hermes.profiles import Profile
    from hermes.secrets import Secrets
    from hermes.sessions import Sessions


def _paths(settings: Settings) -> ProfilePaths:
    return settings.profile.paths


def _secrets(paths: ProfilePaths, environ: Mapping[str, str]) -> Secrets:
    from hermes import dotenv
    from hermes.secrets import Secrets

    return Secrets(dotenv=dotenv.read(paths.dotenv), environ=environ)


def _hold(paths: ProfilePaths) -> Iterator[None]:
    from hermes.holds import hold

    with hold(paths):
        yield


def _plugins(
    settings: Settings,
    paths: ProfilePaths,
    secrets: Callable[[], Secrets],
    environ: Mapping[str, str],
    log: logging.Logger,
    opened: OpenProfile | None,
) -> Iterator[Catalog]:
    from hermes.plugin_host import Catalog
    from hermes.plugin_host.running import Runner, Surroundings

    def host() -> Host:
        from hermes.compat.profile_host import ProfileHost

        assert opened is not None
        return ProfileHost(opened)

    asked = settings.plugins
    surroundings = Surroundings(
        profile=settings.profile.name,
        home=paths.home,
        host=host,
        dotenv=lambda: secrets().dotenv,
        environ=environ,
        limits=settings.memory.timeouts_of,
        isolation=asked.isolation,
        private_home=asked.private_home,
        by_name=asked.by_name,
    )
    catalog = Catalog(paths=paths, disabled=asked.disabled, runner=Runner(surroundings, log), log=log)
    try:
        yield catalog
    finally:
        catalog.close()


def _log(settings: Settings, paths: ProfilePaths) -> Iterator[logging.Logger]:
    from hermes.memory.log import profile_logger

    logger = profile_logger(paths.logs, settings.profile.name)
    try:
        yield logger
    finally:
        for handler in logger.handlers:
            handler.close()


def _journal(settings: Settings, paths: ProfilePaths) -> Iterator[Journal]:
    from hermes.memory.journal import Journal

    keep = settings.journal
    journal = Journal(
        paths.journal, max_age=keep.max_age, max_size=keep.max_size, keep_handed_over=keep.keep_handed_over
    )
    try:
        yield journal
    finally:
        journal.close()


def _builtin(settings: Settings, paths: ProfilePaths) -> BuiltinMemoryProvider:
    from hermes.memory.builtin import BuiltinMemoryProvider, Enabled, Limits

    memory = settings.memory
    return BuiltinMemoryProvider(
        paths,
        limits=Limits(memory=memory.memory_char_limit, user=memory.user_char_limit),
        enabled=Enabled(memory=memory.memory_enabled, user=memory.user_profile_enabled),
        write_approval=memory.write_approval,
    )


def _provider(settings: Settings, plugins: Catalog) -> MemoryProvider | None:
    name = active_provider(settings)
    return None if name is None else plugins.memory_provider(name)


def _sessions(paths: ProfilePaths) -> Iterator[Sessions]:
    from hermes.sessions import Sessions

    sessions = Sessions(paths.sessions)
    try:
        yield sessions
    finally:
        sessions.close()


def _model(settings: Settings, secrets: Secrets) -> Iterator[Model]:
    from hermes.model.client import Model
    from hermes.model.endpoint import endpoint

    asked = settings.model
    key = asked.api_key or secrets.get("OPENAI_API_KEY")
    model = Model(endpoint(asked.base_url, asked.name, key, asked.context_length))
    try:
        yield model
    finally:
        model.close()


def _engine(
    settings: Settings, plugins: Catalog, model: Callable[[], Model], log: logging.Logger
) -> ContextEngine:
    from hermes.context.choosing import choose

    return choose(settings.context.engine, plugins, lambda messages: model().ask(messages), log.warning)


def _manager(
    settings: Settings,
    paths: ProfilePaths,
    journal: Journal,
    builtin: MemoryProvider,
    choose: Callable[[], MemoryProvider | None],
    hold: Callable[[], object],
    log: logging.Logger,
    plugins: Catalog,
) -> Iterator[MemoryManager]:
    from hermes.memory.manager import MemoryManager

    manager = MemoryManager(
        home=paths.home,
        profile=settings.profile.name,
        journal=journal,
        limits=settings.memory.timeouts_of(active_provider(settings) or ""),
        redact=settings.memory.redact,
        disabled_tools=settings.tools.disabled,
        hold=hold,
        hooks=plugins.hooks,
        log=log,
    )
    manager.add_provider(builtin)
    try:
        if (provider := choose()) is not None:
            manager.add_provider(provider, name=plugins.name_of(provider))
    except ProviderUnavailable as exc:
        manager.provider_failed(exc.name, exc.reason)
    try:
        yield manager
    finally:
        manager.shutdown_all()


class Blueprint(containers.DeclarativeContainer):
    """What belongs to exactly one profile; *settings*, *environ* and *opened* are the inputs, all else follows."""

    settings = providers.Dependency(instance_of=Settings)
    environ: providers.Provider[Mapping[str, str]] = providers.Dependency()

    paths = providers.Singleton(_paths, settings)
    secrets = providers.Singleton(_secrets, paths, environ)
    opened: providers.Provider[OpenProfile | None] = providers.Object(None)
    hold = providers.Resource(_hold, paths)
    log = providers.Resource(_log, settings, paths)
    plugins = providers.Resource(_plugins, settings, paths, secrets.provider, environ, log, opened)
    journal = providers.Resource(_journal, settings, paths)
    builtin_provider = providers.Singleton(_builtin, settings, paths)
    memory_provider = providers.Singleton(_provider, settings, plugins)
    sessions = providers.Resource(_sessions, paths)
    model = providers.Resource(_model, settings, secrets)
    context_engine = providers.Factory(_engine, settings, plugins, model.provider, log)
    memory_manager = providers.Resource(
        _manager,
        settings,
        paths,
        journal,
        builtin_provider,
        memory_provider.provider,
        hold.provider,
        log,
        plugins,
    )


def build(
    profile: Profile, environ: Mapping[str, str], overrides: Sequence[str], parts: Mapping[str, Any]
) -> Any:
    """A container of *profile*, its settings read and checked. Raises ``ConfigError``."""
    given = {
        name: part if isinstance(part, providers.Provider) else providers.Object(part)
        for name, part in parts.items()
    }
    if "settings" not in given:
        given["settings"] = providers.Object(load(profile, environ=environ, overrides=overrides))
    container = Blueprint(environ=providers.Object(environ), **given)
    container.check_dependencies()
    return container


def close(container: Any) -> None:
    """Shut every resource down, dependants first.

    ``shutdown_resources()`` of the library stops at the first error and leaves the rest open; here all are
    closed and the errors raised together as an ``ExceptionGroup``.
    """
    failures: list[Exception] = []
    pending = [
        resource for resource in container.traverse(types=[providers.Resource]) if resource.initialized
    ]
    while pending:
        free = [r for r in pending if not any(r in set(other.related) for other in pending)] or pending
        for resource in free:
            try:
                resource.shutdown()
            except Exception as exc:  # noqa: BLE001 - raised below, with all the others
                failures.append(exc)
        pending = [resource for resource in pending if resource not in free]
    if failures:
        raise ExceptionGroup("closing the profile failed", failures)
