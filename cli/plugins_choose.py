"""``hermes plugins select|enable|disable``: each changes one key of the profile's settings and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hermes.cli.output import emit, note, write
from hermes.cli.plugins_list import Chosen, broken, chosen
from hermes.cli.plugins_show import Name, installed
from hermes.cli.state import State, current
from hermes.errors import UsageError

if TYPE_CHECKING:
    from hermes.plugin_host import Catalog

NONE = "none"
_SETTINGS = {"memory": "memory.provider", "context_engine": "context.engine"}
_QUESTIONS = {"memory": "Memory provider", "context_engine": "Context engine"}


def select(
    ctx: typer.Context,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="NAME", help="The memory provider; none for the built-in memory alone."
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", metavar="NAME", help="The context engine.")
    ] = None,
) -> None:
    """Choose the memory provider and the context engine.

    Asks at a terminal; elsewhere the options say it. What is set is one key for each that changes.
    """
    from hermes.cli.asking import at_terminal

    state = current(ctx)
    said = chosen(state)
    catalog = _catalog(said)
    options = {"memory": memory, "context_engine": context}
    wanted = {kind: name for kind, name in options.items() if name is not None}
    if not wanted:
        if not at_terminal() or state.json:
            raise UsageError(
                "nobody is there to choose", next_step="hermes plugins select --memory NAME --context NAME"
            )
        try:
            wanted = {kind: _asked(catalog, said, kind) for kind in _SETTINGS}
        except KeyboardInterrupt:
            write("nothing was changed", sys.stderr)
            raise typer.Exit(130) from None
    for kind, name in wanted.items():
        _check(catalog, kind, name)
    changed = {kind: name for kind, name in wanted.items() if (said.active[kind] or NONE) != name}
    _set(said, changed)
    _tell(state, changed)


def _tell(state: State, changed: dict[str, str]) -> None:
    """What is chosen now, and what stands in the way of it."""
    after = chosen(state)
    data = {**after.active, "changed": sorted(changed)}
    emit(state, data, lambda: _chosen_text(after, changed))
    for kind, name in changed.items():
        if (after.active[kind] or NONE) != name:
            setting = _SETTINGS[kind]
            note(
                state,
                f"hermes: {setting} is set elsewhere too, and that comes first: hermes config show --origin",
            )
    if changed.get("memory", NONE) != NONE:
        _say_what_is_missing(state, changed["memory"])


def enable(ctx: typer.Context, name: Name) -> None:
    """Allow a plugin to be used again."""
    state = current(ctx)
    said = chosen(state)
    if name not in said.disabled:
        _known(said, name)
        emit(state, {"name": name, "enabled": True, "changed": False}, f"{name} is enabled already")
        return
    _set_disabled(said, [other for other in said.disabled if other != name])
    _confirm_written(state, name, enabled=True)


def disable(ctx: typer.Context, name: Name) -> None:
    """Forbid the use of a plugin; it stays installed."""
    state = current(ctx)
    said = chosen(state)
    _known(said, name)
    if name in said.disabled:
        emit(state, {"name": name, "enabled": False, "changed": False}, f"{name} is disabled already")
        return
    _set_disabled(said, [*said.disabled, name])
    _confirm_written(state, name, enabled=False)
    for kind, setting in _SETTINGS.items():
        if said.active[kind] == name:
            note(state, f"hermes: it is what {setting} names, so none is in use now: hermes plugins select")


def _known(said: Chosen, name: str) -> None:
    """Raise ``NotFound`` where no plugin is called *name*; of which kind does not matter here."""
    catalog = _catalog(said)
    if not any(plugin.name == name for plugin in catalog.all):
        installed(catalog, name)


def _catalog(said: Chosen) -> Catalog:
    from hermes.plugin_host.catalog import Catalog

    return Catalog(said.profile.paths, said.disabled)


def _asked(catalog: Catalog, said: Chosen, kind: str) -> str:
    from hermes.cli.asking import choose

    failures = catalog.failures
    options: list[tuple[str, str, str]] = []
    for plugin in catalog.all:
        if plugin.kind == kind:
            shown = f"{plugin.name}  ({plugin.distribution or plugin.source})"
            problem = "disabled" if plugin.name in said.disabled else plugin.problem
            hint = "" if problem or not broken(plugin, failures) else "  it did not load the last time"
            options.append((plugin.name, shown + hint, problem))
    if kind == "memory":
        options.append((NONE, "none  (the built-in memory alone)", ""))
    return choose(_QUESTIONS[kind], options, default=said.active[kind] or NONE)


def _check(catalog: Catalog, kind: str, name: str) -> None:
    """Raise what says why *name* cannot be chosen as a *kind*."""
    if kind == "memory" and name == NONE:
        return
    catalog.find(name, kind)


def _set(said: Chosen, changed: dict[str, str]) -> None:
    from hermes.settings import change

    if changed:
        change(
            said.profile,
            {_SETTINGS[kind]: "" if name == NONE else name for kind, name in changed.items()},
            strict=True,
        )


def _chosen_text(after: Chosen, changed: dict[str, str]) -> str:
    lines = [f"{_QUESTIONS[kind]}: {name or NONE}" for kind, name in after.active.items()]
    return "\n".join([*lines, *(() if changed else ("nothing was changed",))])


def _say_what_is_missing(state: State, name: str) -> None:
    """A provider that was just chosen and cannot start yet."""
    from hermes.cli.memory.status import look

    with state.open() as me:
        found = look(me).provider
    if found.name == name and found.state != "ready":
        note(state, f"hermes: {name} needs to be set up: {found.reason} (hermes memory setup {name})")


def _set_disabled(said: Chosen, names: Sequence[str]) -> None:
    from hermes.settings import set_value, unset_value

    if names:
        set_value(said.profile, "plugins.disabled", list(names))
    else:
        unset_value(said.profile, "plugins.disabled")


def _confirm_written(state: State, name: str, *, enabled: bool) -> None:
    now = name not in chosen(state).disabled
    word = "enabled" if enabled else "disabled"
    emit(state, {"name": name, "enabled": now, "changed": True}, f"{name} is {word}")
    if now is not enabled:
        note(
            state,
            "hermes: plugins.disabled is set elsewhere too, and that comes first: hermes config show --origin",
        )
