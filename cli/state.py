"""What the root options say, and the profile that a command acts on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from hermes.errors import UsageError

if TYPE_CHECKING:
    from hermes.containers import Hermes, OpenProfile
    from hermes.profiles import Profile


@attrs.frozen
class State:
    """The root options of one call."""

    profile: str | None = None
    target_profile: str | None = None
    home: Path | None = None
    settings: tuple[str, ...] = ()
    json: bool = False
    quiet: bool = False
    verbose: int = 0

    def hermes(self) -> Hermes:
        """The composition root for this call."""
        from hermes.containers import Hermes

        return Hermes(home=self.home, settings=self.settings)

    def profile_ref(self) -> Profile:
        """The profile acted on, resolved and not opened."""
        return self.hermes().resolve(self.profile, target=self.target_profile)

    def open(self) -> OpenProfile:
        """Open the profile acted on; a context manager. Settings that nothing reads are told once."""
        from hermes.quiet import asyncio_later

        with asyncio_later():  # a tenth of the time of a short command
            import hermes.containers.blueprint  # noqa: F401
        me = self.hermes().open(self.profile, target=self.target_profile)
        if not self.quiet and not self.json:
            for problem in me.settings().warnings:
                sys.stderr.write(f"note: {problem}\n")
        return me


def current(ctx: Any) -> State:
    """The state of the call that *ctx* (a typer context) belongs to."""
    given = dict(ctx.find_root().obj or {})
    if home := given.pop("home", None):
        given["home"] = Path(home)
    return State(**given)


def confirm(question: str, *, yes: bool) -> None:
    """Ask the person; returns if they agree, otherwise ``typer.Abort``.

    Without a terminal there is nobody to ask: ``UsageError``, unless *yes*.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{question} Nobody is there to answer", next_step="say --yes if that is what you want"
        )
    import typer

    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        raise
    if answer.strip().lower() not in {"y", "yes"}:
        raise typer.Abort
