"""``hermes local forget``: what is meant, whether the person agrees, and whether anything is left of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hermes.errors import NotFound, StoreUnavailable, UsageError
from hermes.paths import ProfilePaths
from hermes.plugins.memory.local import erasure, render
from hermes.plugins.memory.local.memory import Memory
from hermes.plugins.memory.local.records import Fact, Record, Role, Store
from hermes.plugins.memory.local.terminal import confirm, give, note
from hermes.plugins.memory.local.tools import moment

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Going:
    """What is to be deleted; *facts* with all that they corrected."""

    messages: list[Record]
    facts: list[Fact]

    @property
    def texts(self) -> list[str]:
        """Everything of which nothing is to be left."""
        return [record.text for record in self.messages] + [fact.text for fact in self.facts]

    def __str__(self) -> str:
        parts = [(len(self.messages), "message"), (len(self.facts), "fact")]
        return " and ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in parts if n) or "nothing"


def run(memory: Memory, paths: ProfilePaths, args: argparse.Namespace) -> int:
    """Do what *args* ask for. Raises UsageError, NotFound."""
    going = _selected(memory, args)
    examples = going.texts[:_SHOWN]
    data = {"messages": len(going.messages), "facts": len(going.facts), "dry_run": args.dry_run}
    if args.dry_run or not going.texts:
        give(data | {"examples": examples}, lambda: _preview(going, "would go"), as_json=args.json)
        return 0
    if not args.yes:
        note(_preview(going, "will go"))
    confirm(f"Delete {going} for good?", yes=args.yes)
    ids = [record.id for record in going.messages] + [fact.id for fact in going.facts]
    gone = memory.store.forget(None, ids=ids)
    traces = _cleared(memory.store, paths, going.texts)
    left = {str(path): len(texts) for path, texts in traces.files.items()}
    data |= {"forgotten": gone, "searched": traces.searched, "texts": traces.texts, "left": left}
    give(data, lambda: _outcome(gone, traces), as_json=args.json)
    for path, count in left.items():
        note(f"{path} still holds {count} of the texts{_step(paths, Path(path))}")
    return 1 if left else 0


def _selected(memory: Memory, args: argparse.Namespace) -> Going:
    ways = [bool(args.ids), args.session is not None, args.before is not None, args.matching is not None]
    if sum(ways) != 1:
        raise UsageError(
            "say what is to be forgotten, in one way: ids, --session, --before or --matching",
            next_step="hermes local forget --help",
        )
    store = memory.store
    if args.ids:
        going = Going(
            [record for record in store.records(args.ids) if record.role is not Role.FACT],
            store.facts(None, ids=args.ids, former=True),
        )
        known = {record.id for record in going.messages} | {fact.id for fact in going.facts}
        if unknown := [i for i in args.ids if i not in known]:
            raise NotFound(
                f"nothing has the id {', '.join(map(str, unknown))}", next_step="hermes local list"
            )
        return going
    before = None if args.before is None else moment(args.before, memory.clock(), "--before", past=True)
    wanted = None if args.matching is None else args.matching.casefold()
    if wanted is not None and not wanted.strip():
        raise UsageError("--matching needs a text that is not empty")

    def meant(item: Record | Fact, time: float, session: str) -> bool:
        return (
            (args.session is None or session == args.session)
            and (before is None or time < before)
            and (wanted is None or wanted in item.text.casefold())
        )

    messages = [r for r in _messages(store, args.session) if meant(r, r.time, r.session_id)]
    facts = [f for f in store.facts(None, former=True) if meant(f, f.created, f.source.session_id)]
    return Going(messages, store.facts(None, ids=[f.id for f in facts], former=True) if facts else [])


def _messages(store: Store, session: str | None) -> Iterator[Record]:
    """What was said; notes belong to the built-in memory, and facts are looked up as facts."""
    records = store.listing(None, session_id=session or "")
    return (record for record in records if record.role in (Role.USER, Role.ASSISTANT))


def _cleared(store: Store, paths: ProfilePaths, texts: Sequence[str]) -> erasure.Traces:
    """What is left of *texts* below the home, after the journal and the logs were cleared of it."""
    traces = erasure.search(paths.home, texts)
    held = {text for path, found in traces.files.items() if _is_ours(paths, path) for text in found}
    if held:
        _clear(paths, held)
        traces = erasure.search(paths.home, texts)
    if not traces.files:
        return traces
    said = _said_elsewhere(store, {text for found in traces.files.values() for text in found})
    files = {path: [text for text in found if text not in said] for path, found in traces.files.items()}
    return traces._replace(files={path: found for path, found in files.items() if found})


def _is_ours(paths: ProfilePaths, path: Path) -> bool:
    return path.name.startswith(paths.journal.name) or path.is_relative_to(paths.logs)


def _clear(paths: ProfilePaths, texts: set[str]) -> None:
    from hermes.memory import log
    from hermes.memory.journal import Journal

    journal = Journal(paths.journal) if paths.journal.exists() else None
    try:
        for text in texts:
            if journal is not None:
                journal.scrub(text)
            log.scrub(paths.logs, text)
    except OSError as exc:
        raise StoreUnavailable(paths.logs, exc.strerror or str(exc)) from exc
    finally:
        if journal is not None:
            journal.close()


def _said_elsewhere(store: Store, texts: set[str]) -> set[str]:
    """Those of *texts* of which a message or fact that stays holds a part."""
    pieces = {text: erasure.pieces(text) for text in texts}
    found: set[str] = set()
    kept = [record.text for record in store.listing(None)]
    kept += [fact.text for fact in store.facts(None, former=True)]
    for stays in kept:
        found.update(text for text in texts - found if any(piece in stays for piece in pieces[text]))
    return found


def _preview(going: Going, verb: str) -> str:
    lines = [f"  {render.clipped(text, '', 100)}" for text in going.texts[:_SHOWN]]
    more = len(going.texts) - _SHOWN
    return "\n".join([f"{going} {verb}", *lines, *([f"  and {more} more"] if more > 0 else [])])


def _outcome(gone: int, traces: erasure.Traces) -> str:
    if traces.files:
        return f"{gone} are deleted"
    of = "" if traces.searched == traces.texts else f" of {traces.searched} texts, out of {traces.texts},"
    return f"{gone} are deleted; no byte{of or ' of them'} is left in any file of the profile"


def _step(paths: ProfilePaths, path: Path) -> str:
    if path.name.startswith(paths.sessions.name):
        return ": a transcript; hermes sessions delete"
    if path.name.startswith(paths.journal.name):
        return ": not delivered yet; hermes memory flush"
    if path.is_relative_to(paths.memories):
        return ": the built-in memory; hermes memory remove"
    if path.parent == paths.home / "local":
        return ": another process reads it; it goes when that has ended and the file is opened again"
    return ""
