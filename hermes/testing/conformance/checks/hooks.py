"""That ``hooks`` in plugin.yaml and the code say the same."""

from __future__ import annotations

import difflib
import re
from typing import Any

from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import FIRED
from hermes.plugin_host.manifest import FILE
from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.findings import Where

_MEMBERS = frozenset(name for name in vars(MemoryProvider) if not name.startswith("_"))
_OPTIONAL = sorted(name for name in _MEMBERS if name.startswith("on_"))
_WHY = "People and hosts read plugin.yaml to learn what a plugin does without running it."


def declared(bench: Bench) -> None:
    """Hooks that are declared are there, and those that are there are declared."""
    seat, registered = bench.seat(), bench.registered
    file = bench.file(FILE)
    said = [*_texts(bench.job.manifest.get("hooks")), *_texts(bench.job.manifest.get("provides_hooks"))]
    for hook in said:
        if hook in registered.hooks or (hook in _MEMBERS and seat.implements(hook)):
            continue
        where = bench.line_of(file, re.compile(rf"\b{re.escape(hook)}\b").search)
        if hook in _MEMBERS or hook in FIRED:
            bench.error(
                f"{FILE} declares {hook}, which is not implemented",
                why=_WHY,
                mend=f"implement {hook}, or take it out of hooks",
                where=where,
            )
        else:
            near = difflib.get_close_matches(hook, [*_MEMBERS, *FIRED], n=1)
            hint = f"did you mean {near[0]}? otherwise take it out" if near else "take it out of hooks"
            bench.error(f"{FILE} declares {hook}, which is no hook", why=_WHY, mend=hint, where=where)
    there = [*(hook for hook in _OPTIONAL if seat.implements(hook)), *sorted(registered.hooks)]
    if missing := [hook for hook in there if hook not in said]:
        bench.warning(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} implemented and not declared",
            why=_WHY,
            mend=f"add {', '.join(missing)} to hooks in {FILE}",
            where=_place(bench, missing[0]),
        )


def _place(bench: Bench, hook: str) -> Where:
    callbacks = bench.registered.hooks.get(hook)
    code = getattr(callbacks[0], "__code__", None) if callbacks else None
    if code is not None:
        return Where(code.co_filename, code.co_firstlineno)
    return bench.place_of(bench.registered.memory_provider, hook)


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
