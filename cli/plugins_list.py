"""``hermes plugins list``, and what is chosen of what there is.

A list imports no plugin and opens no profile: the few settings that it needs are read from their files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import typer

from hermes.cli.output import ago, emit, note, styled
from hermes.cli.state import State, current

if TYPE_CHECKING:
    from hermes.plugin_host.failures import Failure
    from hermes.plugin_host.plugin import Plugin
    from hermes.profiles import Profile
    from hermes.settings import Settings

TITLES = {"memory": "Memory providers", "context_engine": "Context engines", "general": "Other plugins"}
_CHOSEN_BY = {"memory": "memory.provider", "context_engine": "context.engine"}


@attrs.frozen
class Chosen:
    """What the settings of a profile say about plugins."""

    profile: Profile
    active: Mapping[str, str | None]
    """By kind, the name that is chosen."""
    disabled: Sequence[str] = ()

    @classmethod
    def of(cls, settings: Settings) -> Chosen:
        """What *settings* say."""
        from hermes.settings import active_provider

        active = {"memory": active_provider(settings), "context_engine": settings.context.engine}
        return cls(settings.profile, active, settings.plugins.disabled)


def chosen(state: State) -> Chosen:
    """What is chosen in the profile acted on, from the files alone where they say it plainly.

    Raises what opening the profile raises where they do not.
    """
    from hermes.settings import layers_of, load, origin

    profile, environ = state.profile_ref(), state.hermes().environ
    layers = layers_of(profile, environ=environ, overrides=state.settings)
    keys = (*_CHOSEN_BY.values(), "plugins.disabled")
    said = [next((found.value for found in origin(layers, key)), None) for key in keys]
    configured = any(layer.kind == "profile" for layer in layers)
    plain = _plainly(profile, *said, configured=configured)
    return plain or Chosen.of(load(profile, environ=environ, overrides=state.settings))


def _plainly(
    profile: Profile, provider: Any, engine: Any, disabled: Any, *, configured: bool
) -> Chosen | None:
    """What these values say, None where one of them has to be converted, or is a mistake."""
    from hermes.settings import Settings
    from hermes.settings.schema import ContextSettings, MemorySettings, PluginSettings

    names = [] if disabled is None else disabled
    if not isinstance(names, list) or not all(
        isinstance(text, str | None) for text in (provider, engine, *names)
    ):
        return None
    try:
        settings = Settings(
            profile,
            memory=MemorySettings(provider=provider),
            context=ContextSettings(**({"engine": engine} if engine else {})),
            plugins=PluginSettings(disabled=tuple(names)),
            configured=configured,
        )
    except ValueError:
        return None
    return Chosen.of(settings)


def list_plugins(ctx: typer.Context) -> None:
    """List the plugins that are installed.

    Where each comes from, its version, which ones are used, and what is wrong with those that do not work.
    """
    from hermes.plugin_host.catalog import Catalog

    state = current(ctx)
    said = chosen(state)
    catalog = Catalog(said.profile.paths, said.disabled)
    failures = catalog.failures
    rows = [facts(plugin, said, failures) for plugin in catalog.all]
    emit(state, {"profile": said.profile.name, "plugins": rows}, lambda: _text(rows))
    for kind, setting in _CHOSEN_BY.items():
        name = said.active[kind]
        if name and not any(row["name"] == name and row["kind"] in (kind, "general") for row in rows):
            note(state, f"hermes: {setting} is {name!r}, and no plugin of that name is installed")


def facts(plugin: Plugin, said: Chosen, failures: Mapping[str, Failure]) -> dict[str, Any]:
    """What is known of *plugin* without importing it, as ``--json`` prints it."""
    return {
        "name": plugin.name,
        "kind": plugin.kind,
        "kind_decided_by": plugin.decided,
        "source": plugin.source,
        "version": plugin.version,
        "path": str(plugin.path) if plugin.path else None,
        "distribution": plugin.distribution,
        "entry_point": plugin.entry,
        "enabled": plugin.name not in said.disabled,
        "active": is_active(plugin, said),
        "shadowed": list(plugin.shadowed),
        "broken": broken(plugin, failures),
        "note": plugin.note,
    }


def is_active(plugin: Plugin, said: Chosen) -> bool:
    """Whether *plugin* is the one that the profile uses."""
    kinds = (plugin.kind,) if plugin.kind in _CHOSEN_BY else ()
    return any(said.active[kind] == plugin.name for kind in kinds) and plugin.name not in said.disabled


def broken(plugin: Plugin, failures: Mapping[str, Failure]) -> str:
    """Why *plugin* does not work, as far as that is known: what lies there, or what its last start said."""
    if plugin.problem:
        return plugin.problem
    failure = failures.get(plugin.name)
    return f"it did not load {ago(failure.when)}: {failure}" if failure else ""


def _text(rows: Sequence[Mapping[str, Any]]) -> str:
    width = max((len(row["name"]) for row in rows), default=0)
    parts = []
    for kind, title in TITLES.items():
        of_kind = [row for row in rows if row["kind"] == kind]
        if of_kind:
            parts.append(
                "\n".join([styled(title, "bold"), *(line for row in of_kind for line in _lines(row, width))])
            )
    return "\n\n".join(parts)


def _lines(row: Mapping[str, Any], width: int) -> list[str]:
    mark = styled("*", "green") if row["active"] else " "
    source = f"package {row['distribution']}" if row["distribution"] else row["source"]
    state = "active" if row["active"] else "" if row["enabled"] else "disabled"
    lines = [
        f"{mark} {row['name'].ljust(width)}  {source} {row['version']}".rstrip()
        + (f"  {state}" if state else "")
    ]
    lines += [f"    {styled('broken: ' + row['broken'], 'red')}"] if row["broken"] else []
    lines += [f"    {row['note']}"] if row["note"] else []
    lines += [f"    hides {loser}" for loser in row["shadowed"]]
    return lines
