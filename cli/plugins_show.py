"""``hermes plugins show``: one plugin, what it says of itself and what came of loading it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import attrs
import typer

from hermes.cli.output import emit, styled, table
from hermes.cli.plugins_list import TITLES, Chosen, facts
from hermes.cli.state import current
from hermes.errors import HermesError, NotFound, UsageError

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.plugin_host import Catalog, Plugin

Kind = Literal["memory", "context_engine", "general"]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the plugin, as list shows it.", show_default=False)
]
OfKind = Annotated[
    Kind | None, typer.Option("--kind", help="Of which kind, where a name has several.", show_default=False)
]
_SHOWN_OF_A_FIELD = ("type", "choices", "default", "required", "secret", "env_var", "url")


def show(ctx: typer.Context, name: Name, kind: OfKind = None) -> None:
    """Show everything about a plugin.

    Its manifest, tools, hooks and settings, what it registered that is not used here, files it keeps outside
    the profile, and what leaves the device where its README says so. It is loaded for that, and not started.
    """
    state = current(ctx)
    with state.open() as me:
        plugin = installed(me.plugins(), name, kind)
        data = _looked_at(me, plugin)
    emit(state, data, lambda: _text(data))


def installed(catalog: Catalog, name: str, kind: str | None = None) -> Plugin:
    """The plugin called *name*, of that *kind* where it is given.

    Raises ``NotFound``, and ``UsageError`` where the name has several kinds and none was given.
    """
    found = [one for one in catalog.all if one.name == name and kind in (None, one.kind)]
    if len(found) > 1:
        kinds = ", ".join(one.kind for one in found)
        raise UsageError(f"{name!r} is the name of several plugins: {kinds}", next_step="say --kind")
    if found:
        return found[0]
    import difflib

    near = difflib.get_close_matches(name, [one.name for one in catalog.all], n=1)
    hint = f"did you mean {near[0]!r}? " if near and near[0] != name else ""
    what = f"{kind} plugin" if kind else "plugin"
    raise NotFound(f"there is no {what} {name!r}", next_step=f"{hint}hermes plugins list shows what there is")


def _looked_at(me: OpenProfile, plugin: Plugin) -> dict[str, Any]:
    from hermes.plugin_host.looking import leaves_device

    settings, catalog = me.settings(), me.plugins()
    loaded = _loaded(me, plugin) if plugin.name not in settings.plugins.disabled else {}
    manifest = plugin.manifest
    folder = plugin.path
    return {
        **facts(plugin, Chosen.of(settings), catalog.failures),
        "description": manifest.description,
        "manifest": manifest.as_dict(),
        "runs": _runs(catalog, plugin) if plugin.kind != "general" else "not on this host",
        "leaves_device": leaves_device(folder, manifest.as_dict()),
        **loaded,
    }


def _runs(catalog: Catalog, plugin: Plugin) -> str:
    try:
        isolation = catalog.runner.isolation_of(plugin) if catalog.runner else ""
    except HermesError as exc:
        return str(exc)
    return {"thread": "in this process", "process": "in a process of its own"}.get(isolation, "")


def _loaded(me: OpenProfile, plugin: Plugin) -> dict[str, Any]:
    """What comes of loading *plugin*; one that cannot be loaded says why under ``broken``."""
    catalog = me.plugins()
    try:
        if plugin.kind == "context_engine":
            catalog.context_engine(plugin.name)
            registered = catalog.registered(plugin.name)
            return {
                "unused": registered.unused(),
                "problems": [registered.problem] if registered.problem else [],
            }
        if plugin.kind != "memory":
            return {}
        from hermes.plugin_host.looking import look

        provider = catalog.memory_provider(plugin.name)
        registered = catalog.registered(plugin.name)
        found = look(provider, plugin.name, registered, me.settings().memory.timeouts_of(plugin.name))
    except HermesError as exc:
        return {"broken": getattr(exc, "reason", str(exc))}
    return {
        **attrs.asdict(found),
        "tools": [{"name": name, "description": description} for name, description in found.tools],
    }


def _text(data: Mapping[str, Any]) -> str:
    version = f" {data['version']}" if data["version"] else ""
    parts = [f"{styled(data['name'], 'bold')}{version}\n{data['description']}".rstrip()]
    state = "active" if data["active"] else "not active" if data["enabled"] else "disabled"
    rows = [
        ("Kind", f"{TITLES[data['kind']].lower().rstrip('s')} ({data['kind_decided_by']})"),
        ("From", f"package {data['distribution']}" if data["distribution"] else data["source"]),
        ("Path", data["path"] or data["entry_point"]),
        ("State", state),
        ("Runs", data["runs"]),
        ("Broken", styled(data["broken"], "red") if data["broken"] else ""),
        ("Note", data["note"]),
        *(("Hides", loser) for loser in data["shadowed"]),
        ("Calls itself", data.get("own_name", "")),
        ("Hooks", ", ".join(data.get("hooks", ()))),
        ("Keeps outside", ", ".join(data.get("backup_paths", ()))),
    ]
    parts.append(table([(label, value) for label, value in rows if value], "  "))
    parts += [_block("Tools", [(tool["name"], tool["description"]) for tool in data.get("tools", ())])]
    parts += [_block("Settings", [_field(field) for field in data.get("fields", ())])]
    parts += [_block("Registered and not used here", [(text, "") for text in data.get("unused", ())])]
    parts += [_block("Went wrong", [(text, "") for text in data.get("problems", ())])]
    parts += [_block("Leaves the device", [(line, "") for line in data["leaves_device"].splitlines()])]
    parts += [_block("Manifest", [(key, _short(value)) for key, value in data["manifest"].items()])]
    return "\n\n".join(part for part in parts if part)


def _block(title: str, rows: Sequence[tuple[str, str]]) -> str:
    return f"{styled(title, 'bold')}\n{table(rows, '  ')}" if rows else ""


def _field(field: Mapping[str, Any]) -> tuple[str, str]:
    extra = [
        f"{key}: {_short(field[key])}" for key in _SHOWN_OF_A_FIELD if field.get(key) not in (None, "", False)
    ]
    about = str(field.get("description", ""))
    return str(field.get("key", "")), about + (f" ({', '.join(extra)})" if extra else "")


def _short(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    if isinstance(value, Mapping):
        return (
            str(value["name"])
            if "name" in value
            else ", ".join(f"{k}: {_short(v)}" for k, v in value.items())
        )
    return str(value).lower() if isinstance(value, bool) else str(value)
