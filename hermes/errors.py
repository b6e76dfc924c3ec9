"""Every error that hermes raises on purpose, in one tree.

::

    HermesError                      exit 1    something could not be done
    ├── UsageError                   exit 2    the request itself is wrong
    │   ├── AnswerRefused
    │   ├── AnswersMissing
    │   ├── EntryRefused
    │   └── InvalidProfileName
    ├── NotFound                     exit 3    a name that nothing answers to
    │   ├── EntryNotFound
    │   ├── ProfileNotFound
    │   └── StaleActiveProfile
    ├── Unavailable                  exit 4    it exists and cannot be used now
    │   ├── HomeUnusable
    │   ├── ModelUnavailable
    │   │   └── ContextTooLong
    │   ├── ProfileBusy
    │   ├── ProviderNotInUse
    │   ├── ProviderUnavailable
    │   └── StoreUnavailable
    ├── ConfigError                  exit 78   settings that cannot be used
    │   └── EditRefused
    └── PermanentError               exit 1    raised by a provider: trying again cannot help

An error carries its facts as fields and one sentence for the person (``next_step``): what to do now.
Standard library only: worker processes import this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class HermesError(Exception):
    """Base of all errors of hermes: a message, an exit code and a next step."""

    exit_code = 1

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return self.message

    def as_dict(self) -> dict[str, Any]:
        """The error as ``--json`` prints it: type, message, next step, exit code and the public fields."""
        fields = {k: _plain(v) for k, v in vars(self).items() if k not in {"message", "next_step"}}
        return {
            "type": type(self).__name__,
            "message": self.message,
            "next_step": self.next_step,
            "exit_code": self.exit_code,
            **{k: v for k, v in fields.items() if not k.startswith("_")},
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Problem):
        return value._asdict() | {"path": str(value.path) if value.path else None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


class UsageError(HermesError):
    """The request is wrong as it stands: an option, an argument, a value."""

    exit_code = 2


class AnswerRefused(UsageError):
    """An answer that a field of a provider's setup does not take; it never shows the answer."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}", next_step="answer it otherwise")
        self.key = key
        self.reason = reason


class AnswersMissing(UsageError):
    """Fields of a provider's setup that nobody is there to answer; *missing* says how each can be given.

    *refused* are the answers that were given and cannot be taken, each with the reason.
    """

    def __init__(self, missing: Sequence[str], refused: Mapping[str, str]) -> None:
        wrong = [f"{key}: {reason}" for key, reason in refused.items()]
        wanted = f"still needed: {', '.join(missing)}" if missing else ""
        super().__init__(
            "; ".join([*wrong, *([wanted] if wanted else [])]),
            next_step="nothing was saved; give each, or run it in a terminal",
        )
        self.missing = tuple(missing)
        self.refused = tuple(refused)


class EntryRefused(UsageError):
    """A write to the built-in memory that cannot be made as it was asked for; nothing was written.

    *kind* is ``arguments``, ``content``, ``blocked``, ``limit``, ``ambiguous``, ``off`` or ``repeated``;
    *entries* are those that matter, to choose from.
    """

    def __init__(self, message: str, *, kind: str, entries: Sequence[str] = (), next_step: str = "") -> None:
        super().__init__(message, next_step=next_step or "hermes memory list shows what is there")
        self.kind = kind
        self.entries = tuple(entries)


class InvalidProfileName(UsageError):
    """A profile name that the rules refuse; found before any path is built from it."""

    def __init__(self, name: str, reason: str, *, suggestion: str = "") -> None:
        shown = name if len(name) <= 40 else name[:37] + "..."
        super().__init__(
            f"{shown!r} is not a profile name: {reason}",
            next_step=f"did you mean {suggestion!r}?" if suggestion else "use a-z, 0-9, - and _, 64 at most",
        )
        self.name = name
        self.reason = reason
        self.suggestion = suggestion


class NotFound(HermesError):
    """Nothing answers to that name."""

    exit_code = 3


class EntryNotFound(NotFound):
    """No entry of the built-in memory is meant by that text; *current* is what became of it, where known."""

    def __init__(
        self, message: str, *, entries: Sequence[str] = (), current: str = "", next_step: str = ""
    ) -> None:
        super().__init__(message, next_step=next_step or "hermes memory list shows what is there")
        self.entries = tuple(entries)
        self.current = current


class ProfileNotFound(NotFound):
    """A profile that was asked for and does not exist."""

    def __init__(self, name: str, *, known: Sequence[str] = (), suggestion: str = "") -> None:
        hint = f"did you mean {suggestion!r}? " if suggestion else ""
        super().__init__(
            f"there is no profile {name!r}",
            next_step=f"{hint}profiles: {', '.join(known) or 'none'}; hermes profile create {name}",
        )
        self.name = name
        self.known = tuple(known)


class StaleActiveProfile(NotFound):
    """``active_profile`` names a profile that is gone: nothing is guessed in its place."""

    def __init__(self, name: str, marker: Path) -> None:
        super().__init__(
            f"the chosen profile {name!r} no longer exists ({marker})",
            next_step="hermes profile use default, or name one with --profile",
        )
        self.name = name
        self.marker = marker


class Unavailable(HermesError):
    """It exists and cannot be used now."""

    exit_code = 4


class HomeUnusable(Unavailable):
    """The home cannot be read or written."""

    def __init__(self, path: Path, reason: str, *, next_step: str = "") -> None:
        super().__init__(
            f"{path}: {reason}",
            next_step=next_step or "mend it, or choose another home with --home or HERMES_HOME",
        )
        self.path = path
        self.reason = reason


class ModelUnavailable(Unavailable):
    """The model gave no answer. *status* is that of HTTP, None where there was none.

    *retry_after*: seconds to wait before trying again, 0 where the server named none; None where trying
    again cannot help.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        next_step: str = "",
    ) -> None:
        super().__init__(message, next_step=next_step or "try again later, or see hermes config show model")
        self.status = status
        self.retry_after = retry_after


class ContextTooLong(ModelUnavailable):
    """The conversation is longer than the model takes."""


class ProfileBusy(Unavailable):
    """Another process (or another opener in this one) holds what was asked for."""

    def __init__(self, profile: str, *, holders: Sequence[int] = (), doing: str = "") -> None:
        who = f" (process {', '.join(map(str, holders))})" if holders else ""
        super().__init__(
            f"profile {profile!r} is in use{who}" + (f": {doing}" if doing else ""),
            next_step="end that process first, then try again",
        )
        self.profile = profile
        self.holders = tuple(holders)


class ProviderNotInUse(Unavailable):
    """A command of a memory provider that is installed and not the one that the profile uses."""

    def __init__(self, name: str, in_use: str | None, *, next_step: str) -> None:
        super().__init__(
            f"{name!r} is not the memory provider in use, {f'{in_use!r} is' if in_use else 'there is none'}",
            next_step=next_step,
        )
        self.name = name
        self.in_use = in_use


class ProviderUnavailable(Unavailable):
    """The configured memory provider (or *what* else) cannot be used; the reason is for the person."""

    def __init__(self, name: str, reason: str, *, next_step: str = "", what: str = "memory provider") -> None:
        super().__init__(f"{what} {name!r}: {reason}", next_step=next_step or "hermes memory status")
        self.name = name
        self.reason = reason


class StoreUnavailable(Unavailable):
    """A file of ours cannot be read or written; nothing in it was changed."""

    def __init__(self, path: Path, reason: str, *, next_step: str = "") -> None:
        super().__init__(
            f"{path}: {reason}", next_step=next_step or "check its owner, its mode and the free space"
        )
        self.path = path
        self.reason = reason


class Problem(NamedTuple):
    """One mistake in the settings: where it stands and what was expected there."""

    key: str
    what: str
    path: Path | None = None
    line: int | None = None
    fatal: bool = True

    def __str__(self) -> str:
        where = f"{self.path or ''}{f':{self.line}' if self.line else ''}"
        return ": ".join(part for part in (where, self.key, self.what) if part)


class ConfigError(HermesError):
    """The settings cannot be used; ``problems`` says every reason."""

    exit_code = 78

    def __init__(self, problems: Sequence[Problem], *, next_step: str = "") -> None:
        super().__init__(
            "; ".join(map(str, problems)) or "the settings cannot be used",
            next_step=next_step or "hermes config check shows every mistake; hermes config edit",
        )
        self.problems = tuple(problems)


class EditRefused(ConfigError):
    """A settings file cannot be changed in one line without touching something else."""

    def __init__(
        self, reason: str, *, path: Path | None = None, line: int | None = None, key: str = ""
    ) -> None:
        super().__init__(
            [Problem(key, reason, path, line)], next_step="change it by hand: hermes config edit"
        )
        self.reason = reason


class PermanentError(HermesError):
    """Raised by a provider for a record that it can never take: it is set aside, not tried again."""
