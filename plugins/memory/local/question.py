"""What a question asks for: its terms, whom and when it speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hermes.plugins.memory.local import dates, text, words
from hermes.plugins.memory.local.records import Role

MAX_TERMS = 48
"""Terms that are looked up; of a longer text the rarest-looking ones are kept."""
_PREFIX_LENGTH = 4


@dataclass(slots=True)
class Term:
    """One term to look for; *prefix*: as the beginning of a longer one too."""

    text: str
    prefix: bool = False
    weight: float = 1.0


@dataclass(slots=True)
class Question:
    """A question, understood. *when* tells whether a time is one it speaks of; None if it names none."""

    terms: list[Term]
    authors: frozenset[str] = frozenset()
    when: Callable[[float], bool] | None = None
    spans: list[tuple[float, float]] = field(default_factory=list)
    asks_when: bool = False
    leans: Role | None = None


def understand(asked: str, now: float, authors: Sequence[str] = ()) -> Question:
    """Read *asked*, said at *now* (Unix seconds); *authors* are the people whose words are stored."""
    asked = text.storable(asked)
    dated = dates.find(asked, now)
    low = asked.lower()
    chosen = _terms(dated.rest)
    if not chosen and not dated.spans:  # nothing but function words: then they are what is asked for
        chosen = _terms(asked, keep_stop_words=True)
    said = set(text.terms(low).split())
    named = frozenset(name for name in authors if name and set(text.terms(name).split()) & said)
    return Question(
        terms=chosen,
        authors=named if len(named) < max(2, len(authors)) else frozenset(),
        when=dated.matches if dated.spans or dated.recurring else None,
        spans=dated.spans,
        asks_when=words.ASKS_WHEN.search(low) is not None,
        leans=_leaning(low),
    )


def _terms(asked: str, *, keep_stop_words: bool = False) -> list[Term]:
    kept = asked if keep_stop_words else words.without_stop_words(asked)
    found = [Term(term) for term in dict.fromkeys(text.terms(kept).split())]
    ends = {run[-1] for run in text.runs(kept)}
    longer = [term for term in found if term.text not in ends]
    if not longer:
        for term in found:
            term.prefix = True  # every character begins a pair, so this finds it wherever it stands
    found = longer or found
    found.sort(key=lambda term: -len(term.text) if len(found) > MAX_TERMS else 0)
    return found[:MAX_TERMS]


def may_begin_a_compound(term: str) -> bool:
    """True for a term that is worth looking for as the beginning of longer words."""
    return len(term) >= _PREFIX_LENGTH and term.isalpha()


_ASSISTANT_SAID = re.compile(
    r"\b(?:did|have|had|could|what|which|where)\b[^.?]{0,40}\byou\b[^.?]{0,25}"
    r"\b(?:recommend|suggest|tell|told|advise|propose|say|said|explain|mention|give|gave)"
    r"|\byou\b (?:once |just |have |had |also |previously ){0,2}"
    r"(?:recommended|suggested|told|advised|proposed|said|explained|mentioned|gave)\b"
    r"|你(?:曾经|曾|之前|以前|上次|刚才)?(?:给我|向我|跟我|对我|告诉|推荐|建议)"
    r"|\bhast du (?:mir )?[^.?]{0,40}(?:empfohlen|vorgeschlagen|gesagt|geraten|erklärt)"
)


def _leaning(low: str) -> Role | None:
    return Role.ASSISTANT if _ASSISTANT_SAID.search(low) else None
