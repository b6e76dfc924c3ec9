"""A settings file of another program: the change is shown, the person asked, then it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import emit, note
from hermes.cli.state import State, confirm

if TYPE_CHECKING:
    from hermes.clients.files import Change


def apply(state: State, change: Change, *, yes: bool, done: str) -> None:
    """Show the difference, ask, and write it with a backup; *done* is said afterwards. Raises StoreUnavailable."""
    backup = None
    if change.differs:
        note(state, change.diff())
        confirm(f"Write this to {change.path}?", yes=yes)
        backup = change.write()
    data = {"file": str(change.path), "changed": change.differs, "backup": str(backup) if backup else None}
    kept = f" (as it was: {backup})" if backup else ""
    emit(state, data, f"{done}{kept}" if change.differs else f"nothing to change in {change.path}")


def own_command(state: State) -> list[str]:
    """The command line of this hermes for the profile acted on, as another program is to call it."""
    from hermes.clients.mcp_config import command

    profile = state.profile_ref()
    return [*command(), "--home", str(profile.root), "--profile", profile.name]
