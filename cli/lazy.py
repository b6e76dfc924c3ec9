"""Groups whose commands are imported when they run, not when the command line starts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from hermes.cli.root_options import add_root_options


class LazyGroup(TyperGroup):
    """A group that knows each command by name, ``"module:attribute"`` and help, and imports what runs."""

    lazy: Mapping[str, tuple[str, str]] = {}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pending = dict(self.lazy)
        for name, (_, help_text) in self._pending.items():  # enough for --help, completion and "did you mean"
            self.commands.setdefault(name, TyperCommand(name, help=help_text))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Put the real command in the place of its placeholder, then go on as ever."""
        if args and self.load(args[0]) is None:
            args = self.find(ctx, args)
        return super().resolve_command(ctx, args)

    def find(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a command that nobody declared in its place; the words to go on with."""
        return args

    def load(self, name: str) -> Any:
        """The real command called *name*, or None."""
        if target := self._pending.pop(name, None):
            module, _, attribute = target[0].partition(":")
            command = _command(getattr(importlib.import_module(module), attribute), target[1])
            command.name = name
            add_root_options(command)
            self.commands[name] = command
        return self.commands.get(name)


def _command(target: Any, help_text: str) -> Any:
    if isinstance(target, typer.Typer):
        return typer.main.get_command(target)
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(help=target.__doc__ or help_text)(target)
    return typer.main.get_command(single)


def lazy_app(
    commands: Mapping[str, tuple[str, str]],
    help_text: str,
    *,
    completion: bool = False,
    bare: bool = False,
    group: type[LazyGroup] = LazyGroup,
) -> typer.Typer:
    """A command group; *commands* maps each name to where it is defined and one line of help.

    *bare*: the group has something to say without a subcommand; otherwise that shows its help. *group* is what
    it is made of. More commands can be added with the decorators of typer.
    """
    app = typer.Typer(
        cls=type("LazyGroup", (group,), {"lazy": dict(commands)}),
        help=help_text,
        no_args_is_help=not bare,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_nothing)
    return app


def _nothing() -> None:
    return None
