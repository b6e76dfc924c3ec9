"""``hermes profile``: make, list, choose, rename and delete profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.lazy import lazy_app
from hermes.cli.output import emit, note, table
from hermes.cli.state import State, confirm, current
from hermes.errors import InvalidProfileName, NotFound, StaleActiveProfile, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.profile_admin import Contents, Created
    from hermes.profiles import Profile

app = lazy_app({}, "Profiles: create, list, use, rename, delete.")

Name = Annotated[str, typer.Argument(help="Name of the profile: a-z, 0-9, - and _.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command()
def create(
    ctx: typer.Context,
    name: Name,
    clone: Annotated[bool, typer.Option("--clone", help="Take over from the current profile.")] = False,
    clone_from: Annotated[
        str | None, typer.Option("--clone-from", metavar="NAME", help="Take over from this profile.")
    ] = None,
    with_secrets: Annotated[bool, typer.Option("--with-secrets", help="Take over secrets as well.")] = False,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Leave the memory files out.")] = False,
) -> None:
    """Make a profile: a memory, settings and secrets of its own.

    A clone gets settings, memory files and the settings files of memory providers; never databases, sessions,
    or what waits for delivery; secrets only with --with-secrets.
    """
    state = current(ctx)
    if clone and clone_from:
        raise UsageError("--clone and --clone-from exclude each other", next_step="leave one out")
    if (with_secrets or no_memory) and not (clone or clone_from):
        option = "--with-secrets" if with_secrets else "--no-memory"
        raise UsageError(
            f"{option} says what a clone takes over", next_step="add --clone or --clone-from NAME"
        )
    from hermes import profile_admin

    source = state.profile_ref().name if clone else clone_from
    made = profile_admin.create(
        _root(state),
        name,
        clone_from=source,
        with_secrets=with_secrets,
        with_memory=not no_memory,
        environ=state.hermes().environ,
    )
    data = {
        **_facts(made.profile),
        "cloned_from": made.cloned_from,
        "copied": list(made.copied),
        "paths_rewritten": list(made.rewritten),
        "secrets_removed": list(made.removed),
        "left_out": list(made.left_out),
    }
    emit(state, data, lambda: _created_text(made))


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List the profiles; * marks the one that is used now."""
    from hermes import profiles

    state = current(ctx)
    root = _root(state)
    used, warning = _used_now(state)
    sticky = _sticky(root)
    rows = [
        {**_facts(profile), "current": profile.name == used, "active": profile.name == sticky}
        for profile in profiles.list_profiles(root)
    ]
    data = {
        "root": str(root),
        "current": used,
        "active_profile": sticky,
        "profiles": rows,
        "warning": warning,
    }
    if warning:
        note(state, warning)
    emit(
        state,
        data,
        lambda: table([(f"{'*' if row['current'] else ' '} {row['name']}", _remark(row)) for row in rows]),
    )


@app.command()
def use(ctx: typer.Context, name: Name) -> None:
    """Use a profile from now on, where no option and no variable names another."""
    from hermes import profile_admin

    state = current(ctx)
    profile = profile_admin.use(_root(state), name)
    emit(state, {**_facts(profile), "active_profile": name}, f"using profile {name} ({profile.home})")
    try:
        now = state.profile_ref()
    except (NotFound, InvalidProfileName):
        return  # the commands that need it say so
    if now.name != name:
        note(state, f"here {now.chosen_by} still chooses {now.name}")


@app.command()
def show(ctx: typer.Context, name: Annotated[str | None, typer.Argument(show_default=False)] = None) -> None:
    """Show where a profile lies, why it is the one in use, and who has it open."""
    from hermes import holds, profile_admin, profiles

    state = current(ctx)
    root = _root(state)
    try:
        profile = profiles.named(root, name, chosen_by="NAME") if name is not None else state.profile_ref()
    except StaleActiveProfile as exc:
        warning = f"{exc} ({exc.next_step})"
        note(state, warning)
        emit(state, {"name": None, "root": str(root), "active_profile": exc.name, "warning": warning}, "")
        return
    held_by = holds.holders(profile.paths)
    inside = profile_admin.contents(profile)
    data = {
        **_facts(profile),
        "root": str(root),
        "chosen_by": profile.chosen_by if name is None else None,
        "active": profile.name == _sticky(root),
        "held_by": held_by,
        "files": inside.files,
        "bytes": inside.size,
    }
    rows = [("profile", profile.name), ("home", str(profile.home))]
    rows += [("chosen by", profile.chosen_by)] if name is None else []
    rows += [("holds", _amount(inside))]
    rows += [("open in", ", ".join(f"process {pid}" for pid in held_by))] if held_by else []
    emit(state, data, lambda: table(rows))


@app.command()
def rename(ctx: typer.Context, old: Name, new: Name, yes: Yes = False) -> None:
    """Give a profile another name; paths in its settings follow."""
    from hermes import profile_admin, profiles

    state = current(ctx)
    root = _root(state)
    profiles.check_new_name(old)
    profiles.check_new_name(new)
    profile = profiles.named(root, old)
    confirm(f"Rename profile {old} to {new} (its home moves from {profile.home})?", yes=yes)
    done = profile_admin.rename(root, old, new, environ=state.hermes().environ)
    data = {
        **_facts(done.profile),
        "old_name": old,
        "paths_rewritten": list(done.rewritten),
        "active": done.was_active,
    }
    lines = [f"profile {old} is now {new} ({done.profile.home})"]
    lines += [f"paths rewritten in: {', '.join(done.rewritten)}"] if done.rewritten else []
    emit(state, data, "\n".join(lines))


@app.command()
def delete(ctx: typer.Context, name: Name, yes: Yes = False) -> None:
    """Move a profile to the trash, from where it can be taken back."""
    from hermes import profile_admin, profiles

    state = current(ctx)
    root = _root(state)
    profile = profiles.named(root, profiles.check_new_name(name))
    inside = profile_admin.contents(profile)
    what = f"{profile.home}, {_amount(inside)}" + "".join(f", {name}" for name in inside.names)
    confirm(f"Delete profile {name} ({what})?", yes=yes)
    done = profile_admin.delete(root, name)
    data = {
        "name": name,
        "home": str(done.home),
        "trash": str(done.trash),
        "undo": done.undo,
        "active_profile_reset": done.was_active,
    }
    lines = [f"profile {name} is in the trash ({done.trash})", f"to take it back: {done.undo}"]
    lines += ["it was the profile in use: now that is default"] if done.was_active else []
    emit(state, data, "\n".join(lines))


def _root(state: State) -> Path:
    from hermes import profiles

    return profiles.find_root(state.hermes().environ, state.home).root


def _used_now(state: State) -> tuple[str | None, str]:
    """The profile in use, or None and why there is none: these commands are what mends it."""
    try:
        return state.profile_ref().name, ""
    except (NotFound, InvalidProfileName) as exc:
        if state.profile is not None or state.target_profile is not None:
            raise
        return None, f"{exc} ({exc.next_step})"


def _sticky(root: Path) -> str | None:
    from hermes import profiles

    try:
        return profiles.sticky_choice(root)
    except StaleActiveProfile as exc:
        return exc.name


def _facts(profile: Profile) -> dict[str, Any]:
    return {"name": profile.name, "home": str(profile.home), "exists": profile.home.exists()}


def _remark(row: dict[str, Any]) -> str:
    return f"{row['home']}" + ("" if row["exists"] else "  (nothing in it yet)")


def _amount(inside: Contents) -> str:
    kibibytes = -(-inside.size // 1024)
    return f"{inside.files} file{'' if inside.files == 1 else 's'}, {kibibytes} KiB"


def _created_text(made: Created) -> str:
    lines = [f"profile {made.profile.name} is made ({made.profile.home})"]
    for label, names in (
        ("copied", made.copied),
        ("paths rewritten in", made.rewritten),
        ("secrets taken out", made.removed),
        ("left out", made.left_out),
    ):
        lines += [f"{label}: {', '.join(names)}"] if names else []
    if any(name.endswith(".json") for name in made.copied):
        lines.append(
            "a provider's file may name an account or a store that both profiles would use: look at it"
        )
    lines.append(f"next: hermes -p {made.profile.name} memory status")
    return "\n".join(lines)
