"""``hermes doctor``: try everything out."""

from __future__ import annotations

import typer

from hermes.cli.output import emit, styled, write
from hermes.cli.state import current

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "not tried": "dim"}


def doctor(ctx: typer.Context) -> None:
    """Try everything out, and say what to do about what fails.

    A test turn goes through the memory provider and back. Exits 4 if something failed.
    """
    from hermes.memory import doctor as domain
    from hermes.settings import check

    state = current(ctx)
    profile, environ = state.profile_ref(), state.hermes().environ
    done = []
    with state.open() as me:
        checks = domain.examine(
            profile,
            problems=lambda: list(check(profile, environ=environ)),
            builtin=me.builtin_provider().memory,
            choose=me.memory_provider,
            limits=me.settings().memory.timeouts,
        )
        for one in checks:
            done.append(one)
            if not state.json:  # each as it comes: a provider may take its time
                write(f"{styled(one.outcome.ljust(9), _COLOURS[one.outcome])}  {one.name}: {one.detail}")
                if one.next_step and one.outcome != "ok":
                    write(f"{'':11}{one.next_step}")
    failed = [one for one in done if one.outcome == "failed"]
    data = [
        {"name": c.name, "outcome": c.outcome, "detail": c.detail, "next_step": c.next_step} for c in done
    ]
    emit(state, data, "" if failed else "all that was tried works")
    raise typer.Exit(4 if failed else 0)
