"""What ``hermes local …`` does. Each command takes the parsed arguments and returns its exit code.

The host sets ``hermes_profile`` (the profile acted on), ``hermes_config`` (its settings), ``hermes_secret`` (what reads
its secrets) and ``hermes_json`` on the arguments; without them, the environment says which profile it is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes import profiles
from hermes.errors import EntryNotFound, NotFound, StoreUnavailable
from hermes.holds import hold
from hermes.plugins.memory.local import forgetting, model_commands, render, transfer
from hermes.plugins.memory.local.memory import Memory
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.records import Source
from hermes.plugins.memory.local.terminal import give, note, say, table

SESSION = "command-line"


@contextlib.contextmanager
def opened(args: argparse.Namespace, *, writes: bool = False) -> Iterator[LocalMemoryProvider]:
    """The provider of the profile acted on; one that *writes* keeps the profile from being taken away."""
    profile = profile_of(args)
    config = getattr(args, "hermes_config", {})
    secret = getattr(args, "hermes_secret", os.environ.get)
    provider = LocalMemoryProvider(config=lambda: config, secret=secret)
    held = hold(profile.paths) if writes and profile.home.is_dir() else contextlib.nullcontext()
    with held:
        provider.initialize_for_inspection(SESSION, hermes_home=str(profile.home), platform="cli")
        try:
            yield provider
        finally:
            provider.shutdown()


def profile_of(args: argparse.Namespace) -> profiles.Profile:
    """The profile acted on."""
    given = getattr(args, "hermes_profile", None)
    return given if isinstance(given, profiles.Profile) else profiles.resolve(os.environ)


def search(args: argparse.Namespace) -> int:
    """Messages and facts that match, best first."""
    with opened(args) as provider:
        found = provider.search_records(args.query, limit=args.limit) or []
    give(found, lambda: _lines(found) or "nothing was found", as_json=args.json)
    return 0


def why(args: argparse.Namespace) -> int:
    """Why a question finds what it finds."""
    with opened(args) as provider:
        known = provider.memory.explain(args.query, args.limit)
    found = [
        render.as_dict(reason.record)
        | {
            "score": round(reason.score, 4),
            "offered": reason.relevant,
            "shares": {name: round(share, 4) for name, share in reason.shares.items()},
            "terms": list(reason.terms),
            "cosine": None if reason.cosine is None else round(reason.cosine, 4),
            "by_words": reason.by_words,
            "by_meaning": reason.by_meaning,
        }
        for reason in known.reasons
    ]
    data = {"tier": known.tier, "terms": dict(known.terms), "found": found}
    give(data, lambda: _reasons(data), as_json=args.json)
    return 0


def show(args: argparse.Namespace) -> int:
    """One message or fact whole; of a fact, what it corrected too."""
    with opened(args) as provider:
        store = provider.memory.store
        facts = store.facts(None, ids=[args.id], former=True)
        records = store.records([args.id])
    if facts:
        data = next(render.fact_as_dict(fact) for fact in facts if fact.id == args.id)
        data |= {"corrected": [render.fact_as_dict(fact) for fact in facts if fact.id != args.id]}
    elif records:
        data = render.as_dict(records[0])
    else:
        raise NotFound(f"nothing has the id {args.id}", next_step="hermes local list")
    give(data, lambda: _whole(data), as_json=args.json)
    return 0


def listing(args: argparse.Namespace) -> int:
    """Messages and facts, newest first."""
    with opened(args) as provider:
        store = provider.memory.store
        if args.facts or args.former:
            facts = store.facts(None, former=args.former)
            if args.session:
                facts = [fact for fact in facts if fact.source.session_id == args.session]
            found = [render.fact_as_dict(fact) for fact in facts[: args.limit]]
        else:
            records = store.listing(None, session_id=args.session or "", limit=args.limit)
            found = [render.as_dict(record) for record in records]
    give(found, lambda: _lines(found) or "nothing is stored", as_json=args.json)
    return 0


def stats(args: argparse.Namespace) -> int:
    """How much is stored, what is let go, what is owed."""
    with opened(args) as provider:
        data = provider.get_status_config({})
    give(
        data,
        lambda: table([(label, _shown(label, value)) for label, value in data.items()]),
        as_json=args.json,
    )
    return 0


def pin(args: argparse.Namespace) -> int:
    """Pin a fact; a message becomes a fact first."""
    with opened(args, writes=True) as provider:
        memory = provider.memory
        try:
            fact = memory.store.mark(args.id, None, pinned=True)
        except EntryNotFound:
            fact = memory.store.mark(_made_of(memory, args.id), None, pinned=True)
    data = render.fact_as_dict(fact)
    give(data, lambda: f"pinned {fact.id}: {fact.text}", as_json=args.json)
    return 0


def _made_of(memory: Memory, message: int) -> int:
    """The id of a fact that says what *message* says."""
    for record in memory.store.records([message]):
        source = Source(record.session_id, message=message, tool="pin", person=record.author)
        fact, _ = memory.store.remember(
            record.text, record.scope, memory.clock(), source=source, expires=None, pinned=True
        )
        return fact.id
    raise NotFound(f"nothing has the id {message}", next_step="hermes local list")


def unpin(args: argparse.Namespace) -> int:
    """Unpin a fact."""
    with opened(args, writes=True) as provider:
        fact = provider.memory.store.mark(args.id, None, pinned=False)
    give(render.fact_as_dict(fact), lambda: f"unpinned {fact.id}: {fact.text}", as_json=args.json)
    return 0


def optimize(args: argparse.Namespace) -> int:
    """Do at once what is otherwise done bit by bit."""
    with opened(args, writes=True) as provider:
        memory = provider.memory
        before = memory.store.totals().bytes
        gone = memory.store.optimize(memory.clock(), memory.limits)
        after = memory.store.totals().bytes
    data = {"let_go": gone, "bytes_before": before, "bytes_after": after}
    give(
        data,
        lambda: f"{before:,} bytes before, {after:,} now; {gone} messages were let go",
        as_json=args.json,
    )
    return 0


def export(args: argparse.Namespace) -> int:
    """Everything as JSON Lines."""
    with opened(args) as provider:
        lines = (json.dumps(record, ensure_ascii=False) for record in provider.export_records())
        if not args.output:
            for line in lines:
                say(line)
            return 0
        try:
            descriptor = os.open(args.output, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                count = sum(bool(file.write(f"{line}\n")) for line in lines)
        except OSError as exc:
            raise StoreUnavailable(Path(args.output), exc.strerror or str(exc)) from exc
    note(f"{count} records are in {args.output}")
    return 0


def take_in(args: argparse.Namespace) -> int:
    """Take in what ``export`` wrote. Exit code 1 where a line is malformed; the others are taken in."""
    with contextlib.ExitStack() as stack:
        try:
            lines = sys.stdin.buffer if args.file == "-" else stack.enter_context(Path(args.file).open("rb"))
        except OSError as exc:
            raise StoreUnavailable(Path(args.file), exc.strerror or str(exc)) from exc
        provider = stack.enter_context(opened(args, writes=True))
        taken = transfer.take_in(provider.memory.store, lines)
    data = {
        "messages": taken.messages,
        "facts": taken.facts,
        "known": taken.known,
        "of_other_providers": taken.foreign,
        "malformed": [{"line": line, "what": what} for line, what in taken.malformed],
    }
    for line, what in taken.malformed[: 0 if args.json else 20]:
        note(f"line {line}: {what}")
    text = f"{taken.messages} messages and {taken.facts} facts are new, {taken.known} were known"
    text += f", {taken.foreign} are not of local memory" if taken.foreign else ""
    text += f", {len(taken.malformed)} are malformed" if taken.malformed else ""
    give(data, lambda: text, as_json=args.json)
    return 1 if taken.malformed else 0


def forget(args: argparse.Namespace) -> int:
    """Delete for good, after asking, and look whether anything is left."""
    with opened(args, writes=not args.dry_run) as provider:
        return forgetting.run(provider.memory, profile_of(args).paths, args)


def _of_models(name: str) -> Callable[[argparse.Namespace], int]:
    return lambda args: model_commands.COMMANDS[name](args, profile_of(args).home)


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "search": search,
    "why": why,
    "show": show,
    "list": listing,
    "stats": stats,
    "forget": forget,
    "pin": pin,
    "unpin": unpin,
    "optimize": optimize,
    "export": export,
    "import": take_in,
    **{name: _of_models(name) for name in model_commands.COMMANDS},
}


# -- as text ------------------------------------------------------------------------------------------------


def _lines(found: list[dict[str, Any]]) -> str:
    return "\n".join(f"{_head(record)}\n  {render.clipped(record['text'], '')}" for record in found)


def _head(record: Mapping[str, Any]) -> str:
    """Id, day, who or what, and where it was said."""
    author = record.get("author") or record.get("person") or ""
    role = record["role"] if record["role"] in ("fact", "note") or not author else ""
    parts = [
        str(record["id"]),
        render.day(record["time"]),
        " ".join(part for part in (role, author) if part),
        f"session {record['session_id']}" if record.get("session_id") else "",
        record.get("scope", ""),
        "pinned" if record.get("pinned") else "",
        f"expires {render.day(record['expires'])}" if record.get("expires") else "",
        ("corrected" if record.get("successor") else "expired") if record.get("ended") else "",
    ]
    return "  ".join(part for part in parts if part)


def _whole(data: Mapping[str, Any]) -> str:
    rows = [(key, _shown(key, value)) for key, value in data.items() if key not in ("text", "corrected")]
    text = f"{table(rows)}\n\n{data['text']}"
    corrected = [_head(fact) + f"\n  {fact['text']}" for fact in data.get("corrected", ())]
    return text + ("\n\nIt corrected:\n" + "\n".join(corrected) if corrected else "")


def _reasons(data: Mapping[str, Any]) -> str:
    lines = [f"tier: {data['tier']}"]
    lines += [
        f"looked for: {', '.join(f'{term} (in {n})' for term, n in data['terms'].items()) or 'no word'}"
    ]
    for record in data["found"]:
        shares = [f"{name} {share:.2f}" for name, share in record["shares"].items() if share]
        places = [f"{place} by {how}" for how in ("words", "meaning") if (place := record[f"by_{how}"])]
        cosine = [] if record["cosine"] is None else [f"cosine {record['cosine']:.2f}"]
        lines += [
            "",
            f"{_head(record)}  score {record['score']:.2f}{'' if record['offered'] else '  not offered unasked'}",
            f"  {render.clipped(record['text'], '')}",
            f"  {'; '.join([', '.join(shares), *places, *cosine, 'holds ' + (' '.join(record['terms']) or 'none')])}",
        ]
    return "\n".join(lines if data["found"] else [*lines, "nothing was found"])


_TIMES = ("time", "used", "expires", "ended", "newest", "oldest")


def _shown(label: str, value: Any) -> str:
    if label in _TIMES and isinstance(value, int | float):
        return datetime.fromtimestamp(value).isoformat(sep=" ", timespec="seconds") if value else "never"
    return f"{value:,}" if label == "bytes" else str(value)
