"""``hermes hooks``: memory for Claude Code through its hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hermes.cli.foreign_file import apply, own_command
from hermes.cli.hook_run import handle
from hermes.cli.lazy import lazy_app
from hermes.cli.output import emit
from hermes.cli.state import current
from hermes.errors import NotFound

app = lazy_app({}, "Memory for Claude Code: recall before a prompt, store after an answer.")

ClientName = Annotated[str, typer.Argument(metavar="CLIENT", help="claude-code.")]
ProjectOnly = Annotated[
    bool, typer.Option("--project", help="Only for the project in this folder (.claude/settings.local.json).")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command()
def install(ctx: typer.Context, client: ClientName, project: ProjectOnly = False, yes: Yes = False) -> None:
    """Have a client recall before each prompt and store each answer; hooks of others stay as they are."""
    from hermes.clients import claude_hooks

    state = current(ctx)
    change = claude_hooks.install(_settings_file(client, project=project), own_command(state))
    apply(state, change, yes=yes, done="installed: it holds from the next session on")


@app.command()
def remove(ctx: typer.Context, client: ClientName, project: ProjectOnly = False, yes: Yes = False) -> None:
    """Take the hooks out of a client's settings again; those of others stay."""
    from hermes.clients import claude_hooks

    state = current(ctx)
    change = claude_hooks.remove(_settings_file(client, project=project))
    apply(state, change, yes=yes, done="removed")


@app.command()
def status(ctx: typer.Context, client: ClientName = "claude-code", project: ProjectOnly = False) -> None:
    """Say for which events the hooks are installed."""
    from hermes.clients import claude_hooks

    state = current(ctx)
    path = _settings_file(client, project=project)
    events = claude_hooks.installed(path)
    missing = [event for event in claude_hooks.EVENTS if event not in events]
    text = f"installed for {', '.join(events)} ({path})" if events else f"not installed ({path})"
    if events and missing:
        text += f"; missing: {', '.join(missing)}: hermes hooks install {client}"
    emit(state, {"client": client, "file": str(path), "installed": events, "missing": missing}, text)


@app.command()
def run(
    ctx: typer.Context,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="UserPromptSubmit, Stop or SessionEnd.")],
) -> None:
    """Handle one event of Claude Code, read from standard input; for the client to call. It never fails the client."""
    handle(current(ctx), event)


def _settings_file(client: str, *, project: bool) -> Path:
    if client != "claude-code":
        raise NotFound(f"there are no hooks for {client!r}", next_step="hermes hooks install claude-code")
    import os

    if project:
        return Path.cwd() / ".claude" / "settings.local.json"
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "settings.json"
