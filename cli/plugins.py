"""``hermes plugins``: which plugins there are, which are used, and more of them."""

from __future__ import annotations

import typer

from hermes.cli.lazy import lazy_app

HELP = """Plugins: list, show, select, install, remove.

Without a command it is select at a terminal and list elsewhere.
"""

app = lazy_app(
    {
        "list": ("hermes.cli.plugins_list:list_plugins", "List the plugins that are installed."),
        "show": ("hermes.cli.plugins_show:show", "Show everything about a plugin."),
        "select": (
            "hermes.cli.plugins_choose:select",
            "Choose the memory provider and the context engine.",
        ),
        "install": (
            "hermes.cli.plugins_install:install",
            "Install a plugin: a folder, a wheel, or a package by its name.",
        ),
        "remove": ("hermes.cli.plugins_install:remove", "Remove a plugin; what it stored stays."),
        "enable": ("hermes.cli.plugins_choose:enable", "Allow a plugin to be used again."),
        "disable": ("hermes.cli.plugins_choose:disable", "Forbid the use of a plugin; it stays installed."),
        "new": (
            "hermes.cli.plugins_authoring:new",
            "Write a new memory provider: a working one, to start from.",
        ),
        "check": (
            "hermes.cli.plugins_authoring:check",
            "Check a plugin against everything that hosts expect of one.",
        ),
    },
    HELP,
    bare=True,
)


@app.callback(invoke_without_command=True, help=HELP)
def _bare(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is not None:
        return
    from hermes.cli.asking import at_terminal
    from hermes.cli.state import current

    if at_terminal() and not current(ctx).json:
        from hermes.cli.plugins_choose import select

        select(ctx)
    else:
        from hermes.cli.plugins_list import list_plugins

        list_plugins(ctx)
