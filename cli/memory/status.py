"""``hermes memory status``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.output import ago, emit, styled, table
from hermes.cli.state import State, current

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.memory.journal import JournalStats
    from hermes.memory.status import MemoryStatus, ProviderStatus


def status(
    ctx: typer.Context,
    all_profiles: Annotated[bool, typer.Option("--all-profiles", help="Every profile of this root.")] = False,
) -> None:
    """Show what is remembered, where, and whether all is well.

    Nothing is started or created by looking. Exits 4 if the provider that is configured cannot be used.
    """
    state = current(ctx)
    if all_profiles:
        _all(state)
        return
    with state.open() as me:
        found = look(me)
    emit(state, as_dict(found), lambda: render(found, verbose=bool(state.verbose)))
    raise typer.Exit(exit_code([found]))


def look(me: OpenProfile) -> MemoryStatus:
    """The status of the open profile *me*."""
    from hermes.memory import status as domain
    from hermes.settings import active_provider

    settings = me.settings()
    name = active_provider(settings)
    return domain.look(
        settings.profile,
        builtin=me.builtin_provider().memory,
        provider_name=name,
        choose=me.memory_provider,
        installed=me.plugins().memory if name is None else (),
        config=settings.memory.providers.get(name or "", {}),
        limit=settings.memory.timeouts.initialize,
    )


def _all(state: State) -> None:
    from hermes import profiles
    from hermes.errors import HermesError

    hermes = state.hermes()
    root = profiles.find_root(hermes.environ, hermes.home).root
    found: list[MemoryStatus] = []
    data: list[dict[str, Any]] = []
    texts: list[str] = []
    code = 0
    for profile in profiles.list_profiles(root):
        try:
            with hermes.open(profile.name) as me:
                found.append(look(me))
        except HermesError as exc:  # one profile that is broken must not hide the others
            code = code or exc.exit_code
            data.append({"profile": profile.name, "home": str(profile.home), "error": exc.as_dict()})
            texts.append(f"{styled(profile.name, 'bold')}\n  {styled(str(exc), 'red')}\n  {exc.next_step}")
        else:
            data.append(as_dict(found[-1]))
            texts.append(render(found[-1], verbose=bool(state.verbose)))
    emit(state, data, "\n\n".join(texts))
    raise typer.Exit(code or exit_code(found))


def exit_code(found: Iterable[MemoryStatus]) -> int:
    """4 where a configured provider cannot be used."""
    return 4 if any(one.provider.state in ("unavailable", "failed") for one in found) else 0


def as_dict(found: MemoryStatus) -> dict[str, Any]:
    """The status as ``--json`` prints it; times in Unix seconds, sizes in bytes."""
    journal, provider = found.journal, found.provider
    hooks = journal.hooks.get(provider.name or "", {}) if journal else {}
    health = journal.health.get(provider.name or "") if journal else None
    return {
        "profile": found.profile.name,
        "home": str(found.profile.home),
        "chosen_by": found.profile.chosen_by,
        "builtin": {
            usage.target: {
                "enabled": usage.enabled,
                "entries": usage.entries,
                "chars": usage.used,
                "limit": usage.limit,
                "percent": usage.percent,
                "blocked": usage.blocked,
                "problem": usage.problem,
            }
            for usage in found.builtin
        },
        "pending": found.pending,
        "warnings": list(found.warnings),
        "provider": {
            "name": provider.name,
            "state": provider.state,
            "reason": provider.reason,
            "next_step": provider.next_step,
            "details": dict(provider.details),
        },
        "last_write": found.last_write,
        "last_recall": found.last_recall,
        "journal": {
            "mode": journal.mode if journal else None,
            "undelivered": journal.undelivered if journal else 0,
            "oldest": journal.oldest if journal else None,
            "handed_over": journal.handed_over if journal else 0,
            "dead": journal.dead if journal else 0,
            "size": journal.size if journal else 0,
            "over_size": journal.over_size if journal else False,
            "moved_aside": [str(path) for path in journal.moved_aside] if journal else [],
            "undelivered_by_provider": dict(journal.undelivered_by_provider) if journal else {},
            "circuit": health.circuit if health else "closed",
            "last_error": health.last_error if health else "",
        },
        "hooks": {name: stats.as_dict() for name, stats in hooks.items()},
    }


def render(found: MemoryStatus, *, verbose: bool = False) -> str:
    """The status as a person reads it."""
    lines = [
        ("Profile", f"{styled(found.profile.name, 'bold')}  (chosen by {found.profile.chosen_by})"),
        ("Home", str(found.profile.home)),
    ]
    labels = ["Built-in", ""]
    for label, usage in zip(labels, found.builtin, strict=True):
        lines.append((label, _usage(usage)))
    lines += [("", styled(warning, "yellow")) for warning in found.warnings]
    if found.pending:
        what = "write waits" if found.pending == 1 else "writes wait"
        lines.append(
            ("Approvals", styled(f"{found.pending} {what} for you: hermes memory pending", "yellow"))
        )
    lines += _provider(found.provider)
    lines += (
        [("", f"last write {ago(found.last_write)}, last recall {ago(found.last_recall)}")]
        if (found.last_write or found.last_recall)
        else []
    )
    lines += _journal(found.journal, found.provider.name)
    if verbose:
        lines += _hooks(found)
    return table(lines)


def _usage(usage: Any) -> str:
    if not usage.enabled:
        return f"{usage.target:<7} off"
    if usage.problem:
        return f"{usage.target:<7} {styled(usage.problem, 'red')}"
    entries = "1 entry" if usage.entries == 1 else f"{usage.entries} entries"
    text = f"{usage.target:<7} {entries}, {usage.used:,} of {usage.limit:,} characters ({usage.percent} %)"
    return styled(text, "yellow") if usage.percent >= 90 else text


def _provider(provider: ProviderStatus) -> list[tuple[str, str]]:
    if provider.name is None:
        why = f"none; {provider.reason}" if provider.reason else "none"
        return [("Provider", why), ("", f"to remember every turn: {provider.next_step}")]
    if provider.state != "ready":
        first = styled(f"{provider.name}: {provider.state}: {provider.reason}", "red")
        return [("Provider", first), *([("", provider.next_step)] if provider.next_step else [])]
    return [
        ("Provider", f"{provider.name}: {styled('ready', 'green')}"),
        *[("", line) for line in _details(provider.details)],
    ]


TIMES = ("newest", "oldest", "last_write", "last_recall", "last_sync")
"""What providers call a moment, in Unix seconds."""


def _details(details: Mapping[str, Any]) -> list[str]:
    """What a provider says of itself, in lines; non-breaking spaces keep each label beside its value."""
    shown = ", ".join(
        f"{label.replace('_', ' ')}\u00a0{_shown(label, value)}" for label, value in details.items()
    )
    return textwrap.wrap(shown, 90, break_long_words=False, break_on_hyphens=False)


def _shown(label: str, value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ago(value).replace(" ", "\u00a0") if label in TIMES else f"{value:,}"
    return str(value)


def _journal(journal: JournalStats | None, provider: str | None) -> list[tuple[str, str]]:
    if journal is None:
        return [("Undelivered", "nothing")]
    waiting = f"{journal.undelivered}, the oldest {ago(journal.oldest)}" if journal.undelivered else "nothing"
    lines = [("Undelivered", styled(waiting, "yellow") if journal.undelivered else waiting)]
    others = {name: n for name, n in journal.undelivered_by_provider.items() if name != provider}
    lines += [("", f"{n} kept for {name}, which is not active") for name, n in others.items()]
    if journal.handed_over:
        lines.append(("", f"{journal.handed_over} handed over, not confirmed"))
    if journal.dead:
        lines.append(
            ("", styled(f"{journal.dead} set aside: hermes memory journal list --state dead", "red"))
        )
    health = journal.health.get(provider or "")
    if health is not None and (health.circuit != "closed" or health.failing):
        again = f", tried again {ago(health.retry_at)}" if health.retry_at else ""
        lines.append(
            (
                "",
                styled(
                    f"{provider} fails since {health.failing} attempts{again}: {health.last_error}", "red"
                ),
            )
        )
    if journal.over_size:
        lines.append(
            ("", styled(f"the journal holds {journal.size:,} bytes, above journal.max_size", "yellow"))
        )
    if journal.mode == "rollback":
        lines.append(("", "the file system takes no write-ahead log: a rollback journal is used"))
    lines += [("", styled(f"a damaged journal was kept: {path}", "yellow")) for path in journal.moved_aside]
    return lines


def _hooks(found: MemoryStatus) -> list[tuple[str, str]]:
    hooks = found.journal.hooks.get(found.provider.name or "", {}) if found.journal else {}
    label, lines = "Calls", []
    for name, stats in sorted(hooks.items()):
        median, p99 = stats.latency.quantile(0.5), stats.latency.quantile(0.99)
        took = (
            f"median {median * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"
            if median and p99
            else "no time measured"
        )
        failed = f", {stats.errors} failed" if stats.errors else ""
        late = f", {stats.timeouts} past their limit" if stats.timeouts else ""
        lines.append((label, f"{name}: {stats.calls}, {took}{failed}{late}"))
        label = ""
    return lines
