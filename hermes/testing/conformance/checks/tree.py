"""That ``cli.py``, where there is one, gives a tree of commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.memory.lanes import describe
from hermes.plugin_host import tree
from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.findings import Where

_WHY = "hermes NAME shows the tree without importing the package; where that fails there are no commands."


def built(bench: Bench) -> None:
    """It imports by itself, its parser can be built, every help can be shown and every command has a handler."""
    file = tree.file_of(bench.job.spec)
    if file is None:
        return
    start = bench.line_of(file, lambda line: "def register_cli" in line)
    name = str(bench.job.spec["name"])
    try:
        bench.load()  # the modules of the host are within reach, as they are for a command
        module = tree.load(bench.job.spec)
        parser = tree.build(module, f"hermes {name}")
    except (Exception, SystemExit) as exc:  # noqa: BLE001 - whatever it raises is what is wrong
        raised = bench.place_raised(exc)
        bench.error(
            f"cli.py gives no tree: {describe(exc)}",
            why=_WHY,
            mend="define register_cli(subparser), and import what is slow inside the handlers",
            where=raised if raised.file else start,
        )
        return
    command = any(
        callable(getattr(module, f"{prefix}_command", None)) for prefix in (name, name.replace("-", "_"))
    )
    for path, each, handled in _parsers(parser, f"hermes {name}", handled=command):
        try:
            each.format_help()
        except Exception as exc:  # noqa: BLE001 - a help text may hold what argparse cannot format
            bench.error(
                f"the help of {path} cannot be shown: {describe(exc)}",
                why="--help is where a person begins.",
                mend="write % as %% in help texts",
                where=_help_line(bench, file, start),
            )
        if not handled:
            bench.error(
                f"{path} has no handler",
                why="The command can be called and does nothing.",
                mend="call set_defaults(func=...) on its parser, or on the one above it",
                where=start,
            )


def _parsers(
    parser: argparse.ArgumentParser, path: str, *, handled: bool
) -> Iterator[tuple[str, argparse.ArgumentParser, bool]]:
    """Every parser of the tree, and whether something handles what ends there."""
    handled = handled or callable(parser.get_default("func"))
    groups: list[Any] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    yield path, parser, handled or bool(groups)
    for group in groups:
        for name, below in group.choices.items():
            yield from _parsers(below, f"{path} {name}", handled=handled)


def _help_line(bench: Bench, file: Path, start: Where) -> Where:
    found = bench.line_of(file, lambda line: "%" in line and "help" in line)
    return found if found.line else start
