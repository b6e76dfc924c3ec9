"""``hermes memory off|reset``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hermes.cli.memory.mirror import start
from hermes.cli.output import emit
from hermes.cli.state import confirm, current
from hermes.errors import ProviderUnavailable, StoreUnavailable

FILES = {"memory": "MEMORY.md", "user": "USER.md"}
What = Literal["all", "memory", "user", "provider"]


def off(ctx: typer.Context) -> None:
    """Use no memory provider; what it stored stays, and the built-in memory goes on."""
    from hermes.settings import active_provider, load, set_value

    state = current(ctx)
    profile = state.profile_ref()
    before = active_provider(load(profile, environ=state.hermes().environ))
    set_value(profile, "memory.provider", "")
    text = f"no memory provider; {before} keeps what it stored: hermes config set memory.provider {before}"
    emit(state, {"provider": None, "before": before}, text if before else "no memory provider was in use")


def reset(
    ctx: typer.Context,
    target: Annotated[What, typer.Option("--target", "-t", help="Only this part.")] = "all",
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Session transcripts too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete what is remembered, with its history, backups, pending writes and undelivered records.

    Refused while another process has the profile open.
    """
    from hermes.holds import exclusive
    from hermes.memory.builtin import TARGETS

    state = current(ctx)
    profile = state.profile_ref()
    paths = profile.paths
    halves = [half for half in TARGETS if target in ("all", half)]
    kept = ""
    # this call has the profile to itself, so nothing in it may take a hold
    with state.hermes().override(hold=None).open(profile.name) as me:
        provider = me.memory_provider() if target in ("all", "provider") else None
        going = [str(paths.memories / FILES[half]) for half in halves]
        going += [f"all that {provider.name} stores"] if provider else []
        going += [str(paths.journal)] if target == "all" else []
        going += [str(paths.sessions)] if everywhere else []
        confirm(f"This deletes {', '.join(going)} of profile {profile.name!r}. Go on?", yes=yes)
        with exclusive(paths, "reset it"):
            gone = me.builtin_provider().memory.reset(*halves)
            if provider is not None:
                count = start(me).forget_records()
                if count is None:
                    kept = f"{provider.name} cannot delete what it stores; do it there"
                else:
                    gone.append(f"{count} records of {provider.name}")
            me.close()
            gone += _delete(paths.journal) if target == "all" else []
            gone += _delete(paths.sessions) if everywhere else []
    emit(
        state,
        {"deleted": gone, "kept": kept},
        "\n".join(f"deleted {what}" for what in gone) or "nothing was there",
    )
    if kept and provider is not None:
        raise ProviderUnavailable(provider.name, kept)


def _delete(database: Path) -> list[str]:
    """Delete an SQLite file and what belongs to it; the paths that went."""
    gone = []
    for path in (
        database,
        database.with_name(f"{database.name}-wal"),
        database.with_name(f"{database.name}-shm"),
    ):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as exc:
            raise StoreUnavailable(path, f"cannot be deleted: {exc.strerror}") from exc
        gone.append(str(path))
    return gone
