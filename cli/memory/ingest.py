"""``hermes memory ingest``: conversations that were held elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermes.cli.memory.mirror import start
from hermes.cli.output import emit, note
from hermes.cli.state import State, current
from hermes.errors import HermesError, NotFound, ProviderUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.memory.conversations import Malformed, Said
    from hermes.memory.ingest import Report
    from hermes.memory.journal import Journal
    from hermes.memory.manager import MemoryManager

BAR = 30
SHOWN = 20
"""Malformed records that are named one by one."""


def ingest(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Files; - or none: standard input.")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the provider to take all.")
    ] = 600,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be taken in; nothing is written.")
    ] = False,
) -> None:
    """Take in conversations and memories of other programs, or your own as JSON Lines.

    What a file holds is told by its content: transcripts of Claude Code and Codex, exports of ChatGPT and
    Claude (packed or not), hermes-agent's state.db, memories of Mem0, the file of an MCP memory server, and
    messages in the form of OpenAI. Every message is taken once: the same file again adds nothing, a file that
    has grown, or an import that was stopped, adds the rest. Records that cannot be used are named and left out.
    """
    from hermes.memory import ingest as domain

    state = current(ctx)
    names = files or ["-"]
    _all_there(names)
    with state.open() as me:
        if not dry_run:
            me.hold()
        provider = me.memory_provider()
        if provider is None:
            raise ProviderUnavailable(
                "none",
                "there is nowhere to put the turns",
                next_step="hermes config set memory.provider local",
            )
        name = me.plugins().name_of(provider)
        formats: dict[str, str] = {}
        with _Progress(state) as progress, _known(me, name, dry_run=dry_run) as known:
            manager = None if dry_run else start(me)
            records = _read(names, formats, progress)
            report = domain.ingest(records, into=manager, known=known, progress=progress.read)
            left = _deliver(manager, me.journal(), progress, wait) if manager else 0
        reason = "" if report.durable or not left else me.journal().stats().trouble
        path = me.paths().journal
    _tell(state, report, name, left, formats, dry_run=dry_run)
    if reason:
        raise StoreUnavailable(
            path, f"{_count(left, 'turn')} could not be kept: {reason}", next_step="make room, then again"
        )


@contextlib.contextmanager
def _known(me: OpenProfile, provider: str, *, dry_run: bool) -> Iterator[Callable[[list[str]], set[str]]]:
    """What says which keys were taken in before; for a dry run from a look that changes no byte."""
    from hermes.memory.journal import peek

    if not dry_run:
        yield lambda keys: me.journal().ingested(provider, keys)
        return
    with peek(me.paths().journal) as view:
        yield lambda keys: view.ingested(provider, keys) if view else set()


def _deliver(manager: MemoryManager, journal: Journal, progress: _Progress, wait: float) -> int:
    """Hand over what waits, *wait* seconds at the most; how many records are left."""
    until = time.monotonic() + wait
    while not manager.flush_pending(min(0.5, max(until - time.monotonic(), 0.0))):
        stats = journal.stats()
        progress.deliver(stats.undelivered)
        failing = any(health.failing for health in stats.health.values())
        if failing or time.monotonic() >= until:
            return stats.undelivered
    return 0


def _tell(
    state: State, report: Report, provider: str, left: int, formats: Mapping[str, str], *, dry_run: bool
) -> None:
    conversations = len(report.conversations)
    data = {
        "provider": provider,
        "formats": dict(formats),
        "conversations": conversations,
        "taken": report.taken,
        "known": report.known,
        "left_out": report.left_out,
        "malformed": [{"where": bad.where, "reason": bad.reason} for bad in report.malformed],
        "undelivered": left,
        "durable": report.durable,
        "dry_run": dry_run,
    }
    known = f", {report.known:,} were there already" if report.known else ""
    verb = "would be taken in" if dry_run else "taken in"
    taken = f"{_count(report.taken, 'turn')} {verb} from {_count(conversations, 'conversation')}{known}"
    shown = [f"{name}: {what}" for name, what in formats.items()] if dry_run else []
    emit(state, data, "\n".join([*shown, taken]))
    for bad in report.malformed[:SHOWN]:
        note(state, f"left out: {bad.where}: {bad.reason}")
    if report.left_out > SHOWN:
        note(state, f"left out: {report.left_out - SHOWN:,} more")
    if left:
        note(state, f"note: {left} not yet with {provider}; they are kept: hermes memory journal flush")
    if report.malformed and not report.conversations:
        raise HermesError(
            "nothing in it could be used", next_step="hermes memory ingest --help says what is understood"
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _all_there(names: list[str]) -> None:
    """Fail before anything is written if a file cannot be read."""
    for name in names:
        if name != "-":
            try:
                with Path(name).open("rb"):
                    pass
            except FileNotFoundError:
                raise NotFound(f"there is no file {name}", next_step="nothing was taken in") from None
            except OSError as exc:
                raise StoreUnavailable(Path(name), f"cannot be read: {exc.strerror}") from exc


def _read(names: list[str], formats: dict[str, str], progress: _Progress) -> Iterator[Said | Malformed]:
    from hermes.importers.source import read, read_stream

    for name in names:
        shown = "standard input" if name == "-" else name

        def told(what: str, name: str = shown) -> None:
            formats[name] = what

        if name == "-":
            yield from read_stream(sys.stdin.buffer, shown, told=told)
        else:
            yield from read(Path(name), name, told=told, progress=progress.file)


class _Progress(contextlib.AbstractContextManager["_Progress"]):
    """One line on standard error that is written over, on a terminal only."""

    def __init__(self, state: State) -> None:
        self._shown = sys.stderr.isatty() and not state.quiet and not state.json
        self._began = time.monotonic()
        self._share = 0.0

    def file(self, share: float) -> None:
        """So much of the file that is read now, from 0 to 1."""
        self._share = share

    def read(self, report: Report) -> None:
        """So many turns were read."""
        turns = report.taken + report.known
        rate = turns / max(time.monotonic() - self._began, 0.001)
        done = round(self._share * BAR)
        bar = f"[{'#' * done}{' ' * (BAR - done)}] " if self._share else ""
        self._show(f"{bar}{turns:,} turns read, {rate:,.0f} a second")

    def deliver(self, left: int) -> None:
        """So many are left."""
        self._show(f"{left:,} left to hand over")

    def _show(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()

    def __exit__(self, *exc: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
