"""Write docs/cli.md from the command tree itself; ``--check`` says whether it is up to date."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.cli.app import command
from hermes.cli.lazy import LazyGroup

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
WIDTH = 100
HEAD = """\
# The command line

What each command's `--help` says, written by `make docs`. The options of `hermes` itself (`--profile`,
`--json` and the others) stand before the subcommand or after it.
"""


def commands(tree: Any, name: str = "hermes", parent: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Every command below *tree*, itself first: its words, the command, and a context to show its help in."""
    context = tree.context_class(
        tree,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **tree.context_settings,
    )
    yield context.command_path, tree, context
    for below in sorted(getattr(tree, "commands", {})):
        real = tree.load(below) if isinstance(tree, LazyGroup) else tree.commands[below]
        if not real.hidden:
            yield from commands(real, below, context)


def page() -> str:
    """The text of docs/cli.md."""
    parts = [HEAD]
    for path, found, context in commands(command()):
        text = "\n".join(line.rstrip() for line in found.get_help(context).strip().splitlines())
        parts.append(f"## {path}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Write the page; with ``--check`` compare it instead, and return 1 where it differs."""
    os.environ["HERMES_HOME"] = os.devnull  # whose provider is in use here is no part of the page
    wanted = page()
    if "--check" not in arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    diff = difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), "docs/cli.md", "the commands", lineterm="", n=1
    )
    sys.stdout.writelines(f"{line}\n" for line in diff)
    if found != wanted:
        print("docs/cli.md is out of date: make docs")
    return int(found != wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
