"""What the section ``local:`` of the settings says, as the provider uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes import amounts
from hermes.errors import ConfigError, Problem
from hermes.plugins.memory.local.records import VECTOR_MEMORY, Limits

LEXICAL, SEMANTIC, LATE = "lexical", "semantic", "late-interaction"
"""By words alone, by meaning too, token by token."""
TIERS = ("auto", LEXICAL, SEMANTIC, LATE)


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of the provider; *project*: what is said in a repository or folder belongs to that.

    *model* is the name of an installed one, a folder, or the name at *endpoint*, whose key is the secret called
    *endpoint_key*. *vector_memory* is how many bytes of vectors are kept in memory between questions.
    """

    project: bool = False
    limits: Limits = field(default_factory=Limits)
    tier: str = "auto"
    model: str = ""
    endpoint: str = ""
    endpoint_key: str = ""
    vector_memory: int = VECTOR_MEMORY


def options_of(config: Mapping[str, Any]) -> Options:
    """The options in *config*, the merged settings of the profile. Raises ConfigError."""
    local = config.get("local") or {}
    kept = local.get("retention") or {}
    scope = local.get("scope", "profile")
    if scope not in ("profile", "project"):
        raise _wrong("scope", "expected profile or project")
    return Options(
        project=scope == "project",
        limits=Limits(
            max_age=_amount(kept, "retention.max_age", amounts.seconds, "seconds, or text like 30d"),
            max_turns=int(_amount(kept, "retention.max_turns", _nothing, "a whole number")),
            max_bytes=int(_amount(kept, "retention.max_bytes", amounts.size, "bytes, or text like 500MB")),
        ),
        tier=_tier(local.get("tier", "auto")),
        model=str(local.get("model") or ""),
        endpoint=str(local.get("endpoint") or ""),
        endpoint_key=str(local.get("endpoint_key") or ""),
        vector_memory=int(
            _amount(local, "vector_memory", amounts.size, "bytes, or text like 256MiB", VECTOR_MEMORY)
        ),
    )


def _tier(value: Any) -> str:
    if value not in TIERS:
        raise _wrong("tier", f"expected one of {', '.join(TIERS)}")
    return str(value)


def _amount(
    section: Mapping[str, Any],
    key: str,
    read: Callable[[str], float | None],
    expected: str,
    default: float = 0,
) -> float:
    value = section.get(key.rpartition(".")[2], default)
    amount = read(value) if isinstance(value, str) else value
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 1e18:
        raise _wrong(key, f"expected {expected}, found {value!r}")
    return amount


def _nothing(_: str) -> None:
    """No text is a count."""


def _wrong(key: str, what: str) -> ConfigError:
    return ConfigError([Problem(f"local.{key}", what)])
