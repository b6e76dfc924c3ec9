"""``hermes memory ingest``: conversations that were held elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.memory.mirror import start
from hermes.cli.output import emit, note
from hermes.cli.state import State, current
from hermes.errors import HermesError, NotFound, ProviderUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from hermes.memory.conversations import Malformed, Said
    from hermes.memory.ingest import Report
    from hermes.memory.journal import Journal
    from hermes.memory.manager import MemoryManager

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
) -> None:
    """Take in conversations: JSON Lines of OpenAI-style messages, or a whole conversation as JSON.

    Every message is taken once: the same file again adds nothing, a file that has grown adds the rest. Records
    that cannot be used are named and left out.
    """
    from hermes.memory import ingest as domain

    state = current(ctx)
    names = files or ["-"]
    _all_there(names)
    with state.open() as me:
        me.hold()
        provider = me.memory_provider()
        if provider is None:
            raise ProviderUnavailable(
                "none",
                "there is nowhere to put the turns",
                next_step="hermes config set memory.provider local",
            )
        manager = start(me)
        with _Progress(state) as progress:
            report = domain.ingest(
                _read(names),
                into=manager,
                journal=me.journal(),
                provider=provider.name,
                progress=progress.read,
            )
            left = _deliver(manager, me.journal(), progress, wait)
        reason = "" if report.durable or not left else me.journal().stats().trouble
        path = me.paths().journal
    _tell(state, report, provider.name, left)
    if reason:
        raise StoreUnavailable(
            path, f"{_count(left, 'turn')} could not be kept: {reason}", next_step="make room, then again"
        )


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


def _tell(state: State, report: Report, provider: str, left: int) -> None:
    conversations = len(report.conversations)
    data = {
        "provider": provider,
        "conversations": conversations,
        "taken": report.taken,
        "known": report.known,
        "malformed": [{"where": bad.where, "reason": bad.reason} for bad in report.malformed],
        "undelivered": left,
        "durable": report.durable,
    }
    known = f", {report.known} were there already" if report.known else ""
    taken = f"{_count(report.taken, 'turn')} taken in from {_count(conversations, 'conversation')}{known}"
    emit(state, data, taken)
    for bad in report.malformed[:SHOWN]:
        note(state, f"left out: {bad.where}: {bad.reason}")
    if len(report.malformed) > SHOWN:
        note(state, f"left out: {len(report.malformed) - SHOWN} more")
    if left:
        note(state, f"note: {left} not yet with {provider}; they are kept: hermes memory journal flush")
    if report.malformed and not report.conversations:
        raise HermesError(
            "nothing in it could be used", next_step='each line is a message: {"role", "content"}'
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


def _read(names: list[str]) -> Iterator[Said | Malformed]:
    from hermes.memory.conversations import read

    for name in names:
        if name == "-":
            yield from read(_text(sys.stdin.buffer), "standard input")
        else:
            with Path(name).open("rb") as raw:
                yield from read(_text(raw), name)


def _text(raw: IO[bytes]) -> Any:
    import io

    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace")


class _Progress(contextlib.AbstractContextManager["_Progress"]):
    """One line on standard error that is written over, on a terminal only."""

    def __init__(self, state: State) -> None:
        self._shown = sys.stderr.isatty() and not state.quiet and not state.json
        self._began = time.monotonic()

    def read(self, report: Report) -> None:
        """So many turns were read."""
        turns = report.taken + report.known
        self._show(
            f"{turns:,} turns read, {turns / max(time.monotonic() - self._began, 0.001):,.0f} a second"
        )

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
