"""The documented command line is the real one."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from hermes.cli import app as root
from hermes.cli.lazy import LazyGroup
from hermes.cli.root_options import NAMES
from tests.support import python

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "cli.md"


def test_docs_are_up_to_date() -> None:
    """docs/cli.md says what --help says, for every command there is."""
    result = python(str(ROOT / "scripts" / "cli_docs.py"), "--check", env={"COLUMNS": "60"})
    assert result.returncode == 0, result.stdout + result.stderr


def loaded(tree: Any, path: str = "hermes") -> Iterator[tuple[str, Any]]:
    """Every command with its words, loaded."""
    yield path, tree
    for name in list(getattr(tree, "commands", {})):
        real = tree.load(name) if isinstance(tree, LazyGroup) else tree.commands[name]
        yield from loaded(real, f"{path} {name}")


def test_every_command_has_help() -> None:
    """Each command says what it does, and each of its options too; each has a heading in docs/cli.md."""
    page = PAGE.read_text(encoding="utf-8")
    for path, command in loaded(root.command()):
        assert command.help, path
        assert command.hidden or f"\n## {path}\n" in page, path
        for param in command.params:
            assert param.param_type_name == "argument" or param.help, f"{path} {param.opts}"


def test_root_options_are_on_every_command_once() -> None:
    """Each command takes every root option, and none defines an option of the same name itself."""
    for path, command in loaded(root.command()):
        given = [word for param in command.params for word in param.opts if word in NAMES]
        assert sorted(given) == sorted(NAMES), path


def test_an_option_that_shadows_a_root_option_is_refused() -> None:
    """A command with an option called --json cannot be added to the tree."""
    from hermes.cli.root_options import add_root_options

    app = typer.Typer()

    @app.command()
    def shadowing(json: bool = False) -> None:
        """Has an option of its own that the root has as well."""

    with pytest.raises(RuntimeError, match="--json is a root option"):
        add_root_options(typer.main.get_command(app))


def lazy_entries(table: Mapping[str, tuple[str, str]], path: str) -> Iterator[tuple[str, str, Any]]:
    """Every entry of *table* and of those below it: its words, the help promised, what it stands for."""
    for name, (target, text) in table.items():
        module, _, attribute = target.partition(":")
        real = getattr(importlib.import_module(module), attribute)
        yield f"{path} {name}", text, real
        if isinstance(real, typer.Typer):
            yield from lazy_entries(getattr(real.info.cls, "lazy", {}), f"{path} {name}")


def test_promised_help_is_the_real_help() -> None:
    """What a group lists before a command is loaded is the first sentence of what it says of itself."""
    promises = list(lazy_entries(root.COMMANDS, "hermes"))
    assert len(promises) > 20
    kept = {path: first_sentence(real) for path, _, real in promises}
    assert kept == {path: text for path, text, _ in promises}


def first_sentence(real: Any) -> str:
    """The first sentence of a command's or group's help."""
    text = str(real.info.help) if isinstance(real, typer.Typer) else real.__doc__ or ""
    return re.split(r"(?<=\.)\s", " ".join(text.split("\n\n")[0].split()))[0]


def test_every_page_is_listed() -> None:
    """docs/README.md links each page beside it, and every link between the pages leads somewhere."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in pages if page.name != "README.md" and f"({page.name})" not in index] == []
    for page in [*pages, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]:
        targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
        assert [target for target in targets if not (page.parent / target).exists()] == [], page
