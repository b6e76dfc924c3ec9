"""``hermes memory setup``: choose a provider, answer what it asks, and see whether it works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from hermes.cli import asking
from hermes.cli.memory.status import look
from hermes.cli.output import emit, note, styled, table, write
from hermes.cli.state import State, current
from hermes.errors import HermesError, NotFound, ProviderUnavailable, Unavailable, UsageError

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.memory.seat import Seat
    from hermes.memory.status import ProviderStatus
    from hermes.plugin_host import Catalog, Plugin
    from hermes.profiles import Profile
    from hermes.setup import Field
    from hermes.setup.dependencies import Program
    from hermes.setup.keeping import Saved
    from hermes.setup.undo import Undo

SAVE_SECONDS = 60.0
"""How long a provider may take to keep its answers."""


@attrs.frozen
class Given:
    """What the command says of the answers."""

    fields: Sequence[str]
    secrets: Sequence[str]
    terminal: bool
    """Whether a person is asked for the rest."""

    def __bool__(self) -> bool:
        return bool(self.fields or self.secrets)


@attrs.frozen
class Outcome:
    """What a setup came to."""

    profile: Profile
    provider: str
    saved: Sequence[Saved]
    missing: Sequence[str]
    """What the provider needs beside itself and is not there."""
    status: ProviderStatus
    """What the provider answered when it was tried."""
    active: str | None
    """The memory provider of the profile now."""


def setup(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The provider; you are asked if you leave it out.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An answer; without VALUE, what is stored is taken out."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=SOURCE", help="A secret: @FILE, - for standard input, or env:NAME."),
    ] = None,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="Ask nothing; what is not given stays, or is its default.")
    ] = False,
) -> None:
    """Choose a memory provider, answer what it asks, and try whether it works.

    Nothing is saved before every question is answered. The provider is put to use last, and only if it works;
    exits 4 if it does not.
    """
    state = current(ctx)
    given = Given(field or (), secret or (), terminal=asking.at_terminal() and not no_input)
    try:
        outcome = _setup(state, name, given)
    except KeyboardInterrupt:
        write("nothing saved", sys.stderr)
        raise typer.Exit(130) from None
    except EOFError:
        raise HermesError("the input ended, nothing saved", next_step="hermes memory setup --help") from None
    emit(state, _as_dict(outcome), lambda: _render(outcome))
    if outcome.status.state != "ready":
        raise typer.Exit(Unavailable.exit_code)


def _setup(state: State, name: str | None, given: Given) -> Outcome:
    from hermes.setup.undo import all_or_nothing

    with state.open() as me:
        plugin = _plugin(me, name, terminal=given.terminal)
    missing = _dependencies(state, plugin, terminal=given.terminal)
    chosen = attrs.evolve(state, quiet=True, settings=(*state.settings, f"memory.provider={plugin.name}"))
    with chosen.open() as me, _seat(me, plugin.name, missing) as seat:
        profile = me.settings().profile
        save = _prepared(state, me, seat, plugin, given)
        with all_or_nothing(profile.home, plugin.name) as undo:
            saved = save(undo)
            with chosen.open() as fresh:  # everything anew, from what is on disk now
                status = look(fresh).provider
            active = _put_to_use(state, plugin.name, works=status.state == "ready")
    return Outcome(profile, plugin.name, saved, missing, status, active)


# -- which one, and what it needs ------------------------------------------------------------------------


def _plugin(me: OpenProfile, name: str | None, *, terminal: bool) -> Plugin:
    from hermes.memory.provider import is_core_memory_provider
    from hermes.settings import active_provider

    catalog = me.plugins()
    if name is None:
        name = _picked(catalog, active_provider(me.settings()), terminal=terminal)
    if is_core_memory_provider(name):
        raise UsageError(f"{name} is no provider to set up", next_step="hermes memory off")
    try:
        return catalog.find(name)
    except ProviderUnavailable as exc:
        if any(name == plugin.name for plugin in catalog.all):
            raise
        known = ", ".join(catalog.memory)
        raise NotFound(f"no memory provider {name!r} is installed", next_step=f"installed: {known}") from exc


def _picked(catalog: Catalog, active: str | None, *, terminal: bool) -> str:
    if not terminal:
        known = ", ".join(catalog.memory)
        raise UsageError(
            "which memory provider? Nobody is there to be asked",
            next_step=f"hermes memory setup NAME; installed: {known}",
        )
    options = []
    for plugin in catalog.memory.values():
        off = "it is listed in plugins.disabled" if plugin.name in catalog.disabled else ""
        used = " (in use)" if plugin.name == active else ""
        shown = f"{plugin.name}{used}  {plugin.manifest.description}".rstrip()
        options.append((plugin.name, shown, plugin.problem or off))
    return asking.choose("Memory provider", options, default=active)


def _dependencies(state: State, plugin: Plugin, *, terminal: bool) -> list[str]:
    """What *plugin* needs and is not there; the person may have it installed."""
    from hermes.setup import dependencies as domain

    manifest = plugin.manifest
    wanted = domain.missing(manifest.names("pip_dependencies"))
    if wanted and terminal:
        for one in wanted:
            note(state, f"{plugin.name} needs {one.requirement}: {one.reason}")
        _offer([one.requirement for one in wanted])
        wanted = domain.missing(manifest.names("pip_dependencies"))
    found = [f"{one.requirement}: {one.reason}" for one in wanted]
    if wanted:
        found[-1] += f" ({domain.by_hand([one.requirement for one in wanted])})"
    for program in domain.programs(manifest.extra.get("external_dependencies")):
        if domain.is_there(program) or (terminal and program.install and _offer_program(plugin, program)):
            continue
        found.append(
            f"{program.name}: it is not there" + (f" ({program.install})" if program.install else "")
        )
    return found


def _offer(requirements: Sequence[str]) -> None:
    """Install *requirements* if the person agrees. Raises ``Unavailable`` where that fails."""
    import shlex

    from hermes.setup import dependencies as domain

    command = domain.installing(requirements)
    if command is None or not asking.agree(f"Install it now? {shlex.join(command)}", default=True):
        return
    if not domain.run(command):
        raise Unavailable(
            f"{', '.join(requirements)} could not be installed, nothing saved",
            next_step=domain.by_hand(requirements),
        )


def _offer_program(plugin: Plugin, program: Program) -> bool:
    """Have *program* installed if the person agrees; whether it is there then."""
    from hermes.setup import dependencies as domain

    question = f"{plugin.name} needs {program.name}, which is not there. Run this? {program.install}"
    return asking.agree(question, default=False) and domain.run(program.install) and domain.is_there(program)


# -- what it asks, and where that goes -------------------------------------------------------------------


@contextmanager
def _seat(me: OpenProfile, name: str, missing: Sequence[str]) -> Iterator[Seat]:
    """The chosen provider, every call into it limited and adapted; *missing* is why it may not load."""
    from hermes.memory.coroutines import Coroutines
    from hermes.memory.seat import Seat

    try:
        provider = me.memory_provider()
    except ProviderUnavailable as exc:
        exc.next_step = "; ".join(missing) or exc.next_step
        raise
    assert provider is not None  # it was chosen with --set
    loop = Coroutines("hermes-setup")
    seat = Seat(provider, name, me.settings().memory.timeouts_of(name), loop)
    try:
        yield seat
    finally:
        for lane in (seat.turn, seat.delivery):
            lane.close()
        loop.close(1.0)


def _prepared(
    state: State, me: OpenProfile, seat: Seat, plugin: Plugin, given: Given
) -> Callable[[Undo], Sequence[Saved]]:
    """Ask everything that is to be asked; what then writes it and says where it went."""
    if given.terminal and not given and seat.implements("post_setup"):
        return lambda undo: _own_setup(me, seat, plugin, undo)
    from hermes.setup import fields_of

    fields, problems = fields_of(_ask(seat, "get_config_schema") or ())
    for problem in problems:
        note(state, f"{plugin.name}: {problem}")
    return _filled_in(me, seat, fields, given)


def _filled_in(
    me: OpenProfile, seat: Seat, fields: Sequence[Field], given: Given
) -> Callable[[Undo], Sequence[Saved]]:
    from hermes.settings import change
    from hermes.setup import Form, keeping, places
    from hermes.setup import given as flags
    from hermes.setup.form import fill

    name, settings, secrets = seat.name, me.settings(), me.secrets()
    paths, keeps = settings.profile.paths, seat.implements("save_config")
    flags.check_kinds(fields, given.fields, given.secrets)
    said = flags.answers(given.fields, given.secrets, secrets.environ, sys.stdin.read)
    stored = places.current(
        name,
        fields,
        keeps=keeps,
        variables={**secrets.environ, **secrets.dotenv},
        section=settings.memory.providers.get(name, {}),
        home=paths.home,
    )
    form = fill(Form(tuple(fields), stored), said, asking.answer if given.terminal else None)
    sorted_out = places.sort(name, fields, form.answers, stored, keeps=keeps)

    def save(undo: Undo) -> Sequence[Saved]:
        own = keeping.keep(
            name,
            paths,
            sorted_out,
            undo,
            save_config=lambda values: _ask(seat, "save_config", values, str(paths.home)),
            change_settings=lambda values, gone: change(settings.profile, values, remove=gone),
        )
        return keeping.report(name, fields, form.answers, sorted_out, paths, own)

    return save


def _ask(seat: Seat, member: str, *args: Any) -> Any:
    """What the provider answers; whatever it raises is told as its own mistake."""
    try:
        return seat.deliver(member, *args, within=SAVE_SECONDS)
    except HermesError:
        raise
    except Exception as exc:
        raise ProviderUnavailable(
            seat.name, f"its {member} failed: {type(exc).__name__}: {exc}", next_step="nothing was saved"
        ) from exc


def _own_setup(me: OpenProfile, seat: Seat, plugin: Plugin, undo: Undo) -> Sequence[Saved]:
    """Let the provider set itself up; the files that it wrote. Raises KeyboardInterrupt where it was stopped."""
    from hermes.setup.keeping import Saved

    try:
        code = _post_setup(me, seat, plugin)
    except (HermesError, EOFError):
        raise
    except Exception as exc:
        raise ProviderUnavailable(
            plugin.name, f"its own setup failed: {type(exc).__name__}: {exc}", next_step="nothing was saved"
        ) from exc
    if code == 130:
        raise KeyboardInterrupt
    if code:
        raise ProviderUnavailable(
            plugin.name, f"its own setup ended with {code}", next_step="nothing was saved"
        )
    return [Saved("", "", str(path), changed=True) for path in undo.changed()]


def _post_setup(me: OpenProfile, seat: Seat, plugin: Plugin) -> int:
    """Run ``post_setup``: here for a bundled provider, else in a child that has the terminal. Its exit code."""
    from hermes.compat.profile_host import ProfileHost
    from hermes.overlay import EnvironmentLease

    profile, config = me.settings().profile, ProfileHost(me).load_config()
    if plugin.source != "bundled":
        from hermes.cli.provider_tree import in_child
        from hermes.plugin_host.worker.foreground import run_post_setup

        spec, manifest = attrs.evolve(plugin, kind="memory").spec(), plugin.manifest.as_dict()
        return run_post_setup(spec, manifest, str(profile.home), config, **in_child(me, plugin))
    with EnvironmentLease(profile.name, profile.home, me.secrets().dotenv):
        seat.provider.post_setup(str(profile.home), config)
    return 0


# -- what came of it -------------------------------------------------------------------------------------


def _put_to_use(state: State, name: str, *, works: bool) -> str | None:
    """Make *name* the memory provider if it *works*; the one that the profile has then."""
    from hermes.settings import active_provider, layers_of, origin, set_value
    from hermes.settings.loading import settings_of

    profile, environ = state.profile_ref(), state.hermes().environ
    if works:
        set_value(profile, "memory.provider", name)
    layers = layers_of(profile, environ=environ)
    active = active_provider(settings_of(profile, layers))
    if works and active != name:
        note(
            state, f"hermes: {origin(layers, 'memory.provider')[0]} says memory.provider too, and comes first"
        )
    return active


def _as_dict(outcome: Outcome) -> Mapping[str, Any]:
    """What ``--json`` prints; values are not shown."""
    return {
        "profile": outcome.profile.name,
        "provider": outcome.provider,
        "saved": [attrs.asdict(one) for one in outcome.saved],
        "missing": list(outcome.missing),
        "state": outcome.status.state,
        "reason": outcome.status.reason,
        "active": outcome.active == outcome.provider,
        "active_provider": outcome.active,
    }


def _render(outcome: Outcome) -> str:
    rows = []
    for one in outcome.saved:
        place = one.where if one.name in ("", one.field) else f"{one.name} in {one.where}"
        rows.append((one.field or "written", place if one.changed else f"{place}, as before"))
    lines = [table(rows), ""] if rows else []
    lines += [f"missing  {text}" for text in outcome.missing]
    name, profile, status = outcome.provider, outcome.profile.name, outcome.status
    if status.state != "ready":
        lines.append(styled(f"{name}: {status.state}: {status.reason}", "red"))
        lines += [status.next_step] if status.next_step else []
        used = outcome.active or "none"
        kept = "the answers are saved; " if outcome.saved else ""
        lines.append(f"{kept}the memory provider of {profile!r} is {used}")
        if used != name:
            lines.append(f"to use it all the same: hermes config set memory.provider {name}")
        return "\n".join(lines)
    lines.append(f"{name}: {styled('ready', 'green')}; it was started to see that")
    if outcome.active == name:
        lines.append(
            f"it is the memory provider of {profile!r}; what is running takes it up when it is started again"
        )
    return "\n".join(lines)
