"""The root command, and what happens to an error on its way to the person."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
import typer.main

from hermes.cli.lazy import lazy_app
from hermes.cli.output import fail, write
from hermes.cli.root_options import add_root_options
from hermes.errors import HermesError, UsageError

COMMANDS = {
    "memory": ("hermes.cli.memory:app", "What is remembered: status, entries, recall, import and export."),
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
  hermes profile create NAME       a memory of its own, e.g. for work

hermes --help lists everything; each command has --help too."""

app = lazy_app(COMMANDS, "Memory that lasts for AI agents.", completion=True, bare=True)


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
