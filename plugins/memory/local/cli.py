"""``hermes local …``: the commands of local memory, for the person whose profile it is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from hermes.errors import UsageError

_ID = "Its id, as search and list show it."


def register_cli(subparser: argparse.ArgumentParser) -> None:
    """Add the commands to *subparser*; each handler returns its exit code."""
    commands = subparser.add_subparsers(metavar="COMMAND")
    _looking(commands)
    _changing(commands)
    _moving(commands)
    model = _models(commands)
    for parser in (subparser, *commands.choices.values(), *model.choices.values()):
        setattr(parser, "error", partial(_refuse, parser))  # noqa: B010 - one line, as of every command of hermes


def _refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    raise UsageError(message, next_step=f"{parser.prog} --help")


def _looking(commands: Any) -> None:
    search = _command(commands, "search", "Search messages and facts, best first.")
    search.add_argument("query", metavar="QUERY", help="Words, or a question.")
    _limit(search, 10)
    why = _command(commands, "why", "Show why a question finds what it finds: passages and their scores.")
    why.add_argument("query", metavar="QUERY", help="Words, or a question.")
    _limit(why, 5)
    show = _command(commands, "show", "Show one message or fact whole, with where it comes from.")
    show.add_argument("id", metavar="ID", type=int, help=_ID)
    listing = _command(commands, "list", "List messages and facts, newest first.")
    listing.add_argument("--session", metavar="S", help="Only this session.")
    listing.add_argument("--facts", action="store_true", help="Only facts.")
    listing.add_argument("--former", action="store_true", help="Facts that were corrected or expired, too.")
    _limit(listing, 20)
    _command(commands, "stats", "Show how much is stored, what is let go, and what is owed.")


def _changing(commands: Any) -> None:
    forget = _command(
        commands, "forget", "Delete messages and facts for good, and look whether any byte is left."
    )
    forget.add_argument("ids", metavar="ID", type=int, nargs="*", help=_ID)
    forget.add_argument("--session", metavar="S", help="All of this session.")
    forget.add_argument(
        "--before",
        metavar="WHEN",
        help="All that is older: a date such as 2026-03-01, or a span such as 90d.",
    )
    forget.add_argument("--matching", metavar="TEXT", help="All that holds this text, in any case.")
    forget.add_argument("--dry-run", action="store_true", help="Show what would go, and delete nothing.")
    forget.add_argument("--yes", "-y", action="store_true", help="Do not ask.")
    pin = _command(commands, "pin", "Have a fact shown in every conversation; of a message, make a fact.")
    pin.add_argument("id", metavar="ID", type=int, help=_ID)
    unpin = _command(commands, "unpin", "Have a fact shown only where it fits.")
    unpin.add_argument("id", metavar="ID", type=int, help=_ID)
    _command(commands, "optimize", "Let go what retention asks for, merge the index, give space back.")


def _moving(commands: Any) -> None:
    export = _command(commands, "export", "Write everything as JSON Lines.", json=False)
    export.add_argument("--output", "-o", metavar="FILE", help="Into this file, readable by its owner only.")
    taking = _command(commands, "import", "Take in what export wrote; twice makes no difference.")
    taking.add_argument("file", metavar="FILE", help="A file of JSON Lines, or - for standard input.")


def _models(commands: Any) -> Any:
    group = _command(
        commands, "model", "Models for finding by meaning: list, install, remove.", handler="model list"
    )
    models = group.add_subparsers(metavar="COMMAND")
    _command(models, "list", "List the models that are known and installed.", handler="model list")
    install = _command(
        models, "install", "Install a model, after showing its size and licence.", handler="model install"
    )
    install.add_argument(
        "model", metavar="NAME|FOLDER", nargs="?", help="A known one, or a folder with an ONNX model."
    )
    remove = _command(models, "remove", "Delete a model; what is stored stays.", handler="model remove")
    remove.add_argument("model", metavar="NAME", help="As list shows it.")
    for parser in (install, remove):
        parser.add_argument("--yes", "-y", action="store_true", help="Do not ask.")
    return models


def _command(
    commands: Any,
    name: str,
    text: str,
    *,
    handler: str = "",
    json: bool = True,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(func=_running(handler or name))
    if json:
        parser.add_argument("--json", action="store_true", help="As JSON.")
    return parser


def _limit(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--limit", "-n", metavar="N", type=_positive, default=default, help=f"How many at most ({default})."
    )


def _positive(said: str) -> int:
    if not said.isascii() or not said.isdigit() or int(said) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, not {said!r}")
    return int(said)


def _running(name: str) -> Callable[[argparse.Namespace], int]:
    """The handler of the command *name*; its module is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        from hermes.plugins.memory.local import commands

        args.json = getattr(args, "json", False) or getattr(args, "hermes_json", False)
        return commands.COMMANDS[name](args)

    return run
