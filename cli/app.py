"""The root command, and what happens to an error on its way to the person."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.main

from hermes.cli.lazy import LazyGroup, lazy_app
from hermes.cli.output import fail, write
from hermes.cli.root_options import add_root_options
from hermes.errors import HermesError, UsageError

COMMANDS = {
    "memory": ("hermes.cli.memory:app", "What is remembered: status, entries, recall, import and export."),
    "chat": (
        "hermes.cli.chat:chat",
        "Talk with a model that remembers: one answer, or a conversation at a terminal.",
    ),
    "mcp": ("hermes.cli.mcp:app", "This memory for other agents, by the Model Context Protocol."),
    "hooks": (
        "hermes.cli.hooks:app",
        "Memory for Claude Code: recall before a prompt, store after an answer.",
    ),
    "sessions": ("hermes.cli.sessions:app", "Transcripts: list, search, show, rename, delete, export."),
    "plugins": ("hermes.cli.plugins:app", "Plugins: list, show, select, install, remove."),
    "profile": ("hermes.cli.profile:app", "Profiles: create, list, use, rename, delete."),
    "doctor": ("hermes.cli.doctor:doctor", "Try everything out, and say what to do about what fails."),
    "config": ("hermes.cli.config:app", "Settings: show, get, set, check, and where each comes from."),
}

WELCOME = """\
hermes gives an agent memory that lasts.

  hermes memory status             what is remembered, and where
  hermes memory add TEXT           remember something yourself
  hermes memory ingest FILE        take in conversations you already have
  hermes memory recall QUESTION    what a model would be told
  hermes memory setup              choose another memory provider
  hermes chat                      talk with a model that remembers
  hermes profile create NAME       a memory of its own, e.g. for work

hermes --help lists everything; each command has --help too."""


class RootGroup(LazyGroup):
    """Our commands, and that of the memory provider in use; a word of ours is never a provider's."""

    _provider: Any = None

    def find(self, ctx: Any, args: list[str]) -> list[str]:
        """Mount the tree of the provider that the first word names."""
        from hermes.cli.provider_tree import mounted

        tree, args = mounted(ctx, args, self.commands)
        if tree is not None:
            self.commands[args[0]] = tree
        return args

    def list_commands(self, ctx: Any) -> list[str]:
        """Our words, and the provider's if it has commands of its own."""
        from hermes.cli.provider_tree import listed

        words = list(super().list_commands(ctx))
        self._provider = listed(ctx)
        return words if self._provider is None else [*words, self._provider.name]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; the provider's is known once it is listed."""
        listed = self._provider if self._provider and self._provider.name == cmd_name else None
        return super().get_command(ctx, cmd_name) or listed


app = lazy_app(COMMANDS, "Memory that lasts for AI agents.", completion=True, bare=True, group=RootGroup)


def _version(value: bool) -> None:
    if value:
        from hermes import __version__

        write(f"hermes {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    _version_asked: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Memory that lasts for AI agents."""
    if ctx.invoked_subcommand is None:
        write(WELCOME)


def command() -> Any:
    """The whole command tree, as the parser sees it; its groups are loaded when they run."""
    tree = typer.main.get_command(app)
    add_root_options(tree, hidden=False)
    return tree


def run(argv: Sequence[str]) -> int:
    """Run the command line *argv* and return its exit code. Every error becomes one line here."""
    words = list(argv)
    options = words[: words.index("--")] if "--" in words else words
    try:
        code = _run(words, as_json="--json" in options, verbose=_asks_for_traceback(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # nobody reads on; the interpreter must not find that out again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _asks_for_traceback(options: Sequence[str]) -> bool:
    return any(
        word == "--verbose" or (word[:1] == "-" and word[1:].strip("v") == "" != word[1:]) for word in options
    )


def _run(argv: list[str], *, as_json: bool, verbose: bool) -> int:
    try:
        result = command().main(args=argv, prog_name="hermes", standalone_mode=False)
    except HermesError as exc:
        error = exc
    except typer.TyperException as exc:  # what the parser says about the words it was given
        if type(exc).__name__ == "NoArgsIsHelpError":
            write(str(exc.args[0]))
            return 0
        error = _misuse(exc)
    except typer.Abort:
        error = HermesError("stopped; nothing was changed")
    except BrokenPipeError:
        raise
    except Exception as exc:  # noqa: BLE001 - the last place before the person
        reasons = exc.exceptions if isinstance(exc, ExceptionGroup) else [exc]
        error = HermesError(
            "; ".join(f"{type(reason).__name__}: {reason}" for reason in reasons),
            next_step="" if verbose else "run it again with --verbose for the traceback",
        )
        error.__cause__ = exc
    else:
        return result if isinstance(result, int) else 0
    if verbose:
        import traceback

        traceback.print_exception(error.__cause__ or error)
    fail(error, as_json=as_json)
    return error.exit_code


def _misuse(exc: Any) -> HermesError:
    message = exc.format_message() if hasattr(exc, "format_message") else str(exc)
    path = exc.ctx.command_path if getattr(exc, "ctx", None) else "hermes"
    return UsageError(message.rstrip("."), next_step=f"{path} --help")
