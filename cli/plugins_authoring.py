"""``hermes plugins new`` and ``hermes plugins check``: for those who write a provider."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.output import emit, styled, write
from hermes.cli.state import State, current
from hermes.errors import UsageError

if TYPE_CHECKING:
    from hermes.plugin_host import Plugin
    from hermes.testing.conformance import Finding, Outcome

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red", "not tried": "dim"}


def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the provider.", show_default=False)],
) -> None:
    """Write a new memory provider: a working one, to start from.

    A folder NAME is made in the current folder: plugin.yaml, the provider, commands of its own, a README and
    tests. Nothing is written over.
    """
    from hermes.cli.app import COMMANDS
    from hermes.plugin_host import scaffold
    from hermes.plugin_host.discovery import bundled

    taken = {*COMMANDS, *(plugin.name for plugin in bundled())}
    files = scaffold.write(name, Path.cwd(), taken=taken)
    shown = [os.path.relpath(path) for path in files]
    steps = [
        f"hermes plugins check ./{name}      every rule of the contract, tried out",
        f"hermes plugins install ./{name}    put it into the profile",
        f"hermes memory setup {name}         and use it",
    ]
    emit(
        current(ctx),
        {"name": name, "folder": str(Path.cwd() / name), "files": shown},
        "\n".join([*shown, "", *steps]),
    )


def check(
    ctx: typer.Context,
    plugin: Annotated[
        str,
        typer.Argument(
            metavar="PATH|NAME",
            help="Folder of a plugin, or the name of an installed one.",
            show_default=False,
        ),
    ],
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Answer a field of its form, such as the address of a test server on this machine.",
        ),
    ] = None,
) -> None:
    """Check a plugin against everything that hosts expect of one.

    Each rule is tried in a process of its own, with a home of its own and no network beyond this machine.
    Exits 1 if something has to be mended.
    """
    from hermes.testing.conformance import CHECKS, Examination, Report

    state = current(ctx)
    found = _plugin(state, plugin)
    examination = Examination(found, _answers(field or ()))
    done = []
    for name in CHECKS:
        outcome = examination.run(name)
        done.append(outcome)
        if not state.json:  # each as it comes: they take a few seconds together
            _show(outcome, examination.folder, quiet=state.quiet)
    report = Report(found.name, examination.folder, tuple(done))
    emit(state, report.as_dict(), _summary(report.as_dict()))
    raise typer.Exit(1 if report.errors else 0)


def _plugin(state: State, word: str) -> Plugin:
    """The plugin in the folder *word*, or the installed one of that name."""
    from hermes.cli.plugins_show import installed
    from hermes.testing.conformance import plugin_in

    if os.sep in word or word in (".", "..") or Path(word, "__init__.py").is_file():
        return plugin_in(Path(word).expanduser())
    with state.open() as me:
        plugin = installed(me.plugins(), word)
    if plugin.kind == "context_engine":
        raise UsageError(
            f"{word} is a context engine; what is checked is the contract of memory providers",
            next_step="hermes plugins show shows it",
        )
    return plugin


def _answers(given: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    if wrong := [key for key, equals, _ in pairs if not equals or not key]:
        raise UsageError(
            f"{wrong[0]!r} is no KEY=VALUE", next_step="for example --field url=http://127.0.0.1:8000"
        )
    return {key: value for key, _, value in pairs}


def _show(outcome: Outcome, folder: Path | None, *, quiet: bool) -> None:
    if quiet and not outcome.findings:
        return
    mark = styled(outcome.verdict.ljust(9), _COLOURS[outcome.verdict])
    write(f"{mark}  {outcome.check}: {outcome.rule}")
    if outcome.not_tried:
        write(f"{'':11}not tried to its end: {outcome.not_tried}")
    for finding in outcome.findings:
        write(_said(finding, folder))


def _said(finding: Finding, folder: Path | None) -> str:
    where = finding.where.relative_to(folder)
    colour = _COLOURS[finding.severity]
    head = f"{styled(finding.severity, colour)}: {finding.what}"
    return f"{'':11}{where}: {head}\n{'':13}why: {finding.why}\n{'':13}mend: {finding.mend}"


def _summary(data: dict[str, Any]) -> str:
    counted = [
        f"{data[key]} {key if data[key] != 1 else key[:-1]}" for key in ("errors", "warnings") if data[key]
    ]
    not_tried = sum(check["verdict"] == "not tried" for check in data["checks"])
    if not_tried:
        counted.append(f"{not_tried} not tried")
    tried = len(data["checks"])
    return f"\n{data['plugin']}: {tried} checks, {', '.join(counted) if counted else 'nothing to mend'}"
