"""The order of candidates for a question. Works on terms, places and times alone; knows no store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hermes.plugins.memory.local import text, words
from hermes.plugins.memory.local.question import Question, Term
from hermes.plugins.memory.local.records import Candidate, Role

_PLACES = 32
"""Bits for a place, so that a session and a place are one number."""
SHORTEST_NEIGHBOUR = 3
"""Terms that a message must hold to be found for its neighbours' sake: "ok" is nobody's answer."""


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each sign counts; priors are shares of the best score."""

    saturation: float = 1.2
    length: float = 0.75
    spread: tuple[float, ...] = (0.5, 0.25)
    author: float = 0.12
    user: float = 0.1
    fact: float = 0.35
    asked_role: float = 0.1
    session: float = 0.1
    when: float = 0.3
    tells_when: float = 0.1
    prefix: float = 0.5
    same: float = 0.8
    corrects: float = 0.5
    meaning: float = 0.5
    tokens: float = 0.6
    surer: float = 2.0
    """What priors are multiplied with where words and meaning add up to more."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of the terms of a question: how many messages hold each, of how many."""

    messages: int
    mean_terms: float
    holding: Mapping[str, int]

    def weight(self, term: Term) -> float:
        """The rarer, the more it tells."""
        held = min(self.holding.get(term.text, 0), self.messages)
        return term.weight * math.log(1 + (self.messages - held + 0.5) / (held + 0.5))


@dataclass(slots=True)
class Scored:
    """A candidate with its score, and what that is made of: shares of the best, in the order they are added."""

    candidate: Candidate
    score: float
    words: float = 0.0
    neighbours: float = 0.0
    meaning: float = 0.0
    signs: float = 0.0
    session: float = 0.0
    tokens: float = 0.0


def rank(
    question: Question,
    candidates: Sequence[Candidate],
    known: Statistics,
    weights: Weights | None = None,
    close: Mapping[int, float] | None = None,
) -> list[Scored]:
    """The candidates that match, stand beside a match or are *close* to the question, best first.

    *close* holds the cosines of those that have vectors, None where words are all there is.
    """
    weights = weights or Weights()
    own = _own_scores(question, candidates, known, weights)
    scored = _spread(candidates, own, weights, near=close or {})
    best = max((s.score for s in scored), default=0.0)
    if best <= 0 and not close:
        return []
    _add_up(question, scored, best or 1.0, close or {}, weights)
    _lift_sessions(scored, weights)
    scored.sort(key=lambda s: (-s.score, -s.candidate.time, -s.candidate.id))
    return scored


def refine(scored: list[Scored], near: Mapping[int, float], weights: Weights | None = None) -> list[Scored]:
    """The best of *scored* anew: *near* says how near each of them is to the question token by token."""
    if not near:
        return scored
    weights = weights or Weights()
    best, low = scored[0].score or 1.0, min(near.values())
    width = max(near.values()) - low or 1.0
    first = [s for s in scored if s.candidate.id in near]
    for entry in scored:
        entry.score /= best
    for entry in first:
        entry.tokens = weights.tokens * (near[entry.candidate.id] - low) / width
        entry.score += entry.tokens
    others = [s for s in scored if s.candidate.id not in near]
    for entry in others[: len(first)]:  # without vectors yet: taken to be as near as their score says
        entry.tokens = weights.tokens * max(0.0, min(1.0, entry.score))
        entry.score += entry.tokens
    return sorted([*first, *others], key=lambda s: (-s.score, -s.candidate.time, -s.candidate.id))


def _own_scores(
    question: Question, candidates: Iterable[Candidate], known: Statistics, weights: Weights
) -> dict[int, float]:
    """Candidate id -> BM25 of its best passage."""
    k = weights.saturation
    flat, slope = k * (1 - weights.length), k * weights.length / known.mean_terms
    asked = [
        (1 << i, f" {t.text} ", f" {t.text}", known.weight(t) * (k + 1), weights.prefix if t.prefix else 0.0)
        for i, t in enumerate(question.terms)
    ]
    of_mask: dict[int, list[tuple[int, str, str, float, float]]] = {}
    found: dict[int, float] = {}
    for candidate in candidates:
        if not candidate.holds:
            continue
        sought = of_mask.get(candidate.holds)
        if sought is None:
            sought = of_mask[candidate.holds] = [term for term in asked if term[0] & candidate.holds]
        best, held = 0.0, 0
        for passage in text.passages(candidate.terms):
            norm = flat + slope * (passage.count(" ") + 1)
            padded, score = f" {passage} ", 0.0
            for bit, whole, start, weight, partly in sought:
                if times := padded.count(whole):
                    score += weight * times / (times + norm)
                elif partly and (times := padded.count(start)):
                    score += partly * weight * times / (times + norm)
                else:
                    continue
                held |= bit
            best = max(best, score)
        candidate.holds = held
        if best:
            found[candidate.id] = best
    return found


def _spread(
    candidates: Sequence[Candidate], own: Mapping[int, float], weights: Weights, near: Mapping[int, float]
) -> list[Scored]:
    """Give each candidate a share of what its neighbours score: an answer stands beside its question."""
    scores = {**dict.fromkeys([c.id for c in candidates], 0.0), **own}
    at = {c.session << _PLACES | c.place: c.id for c in candidates if c.role != Role.NOTE}
    for c in candidates:
        score = own.get(c.id)
        if score is None or c.role == Role.NOTE:
            continue
        here = c.session << _PLACES | c.place
        for distance, share in enumerate(weights.spread, 1):
            if (before := at.get(here - distance)) is not None:
                scores[before] += share * score
            if (after := at.get(here + distance)) is not None:
                scores[after] += share * score
    return [
        Scored(c, score, own.get(c.id, 0.0))
        for c in candidates
        if ((score := scores[c.id]) > 0 or c.id in near)
        and (c.id in own or c.terms.count(" ") >= SHORTEST_NEIGHBOUR - 1)
    ]


def _add_up(
    question: Question,
    scored: Iterable[Scored],
    best: float,
    close: Mapping[int, float],
    weights: Weights,
) -> None:
    """Make scores shares of the *best* and add meaning and signs. What has no vector is as near as its words say."""
    by_role = {int(role): 0.0 for role in Role}
    by_role |= {int(Role.USER): weights.user, int(Role.FACT): weights.fact}
    if question.leans is not None:
        by_role[question.leans] += weights.user + weights.asked_role
    authors, when, asks_when = question.authors, question.when, question.asks_when
    times = weights.surer if close else 1.0
    nearest = max(close.values(), default=0.0) or 1.0
    for entry in scored:
        candidate = entry.candidate
        share = entry.score / best
        entry.words /= best
        entry.neighbours = share - entry.words
        if close:
            cosine = close.get(candidate.id)
            entry.meaning = weights.meaning * (share if cosine is None else max(0.0, cosine) / nearest)
        signs = by_role[candidate.role]
        if authors and candidate.author in authors:
            signs += weights.author
        if when is not None and when(candidate.time):
            signs += weights.when
        if asks_when and not words.TELLS_WHEN.isdisjoint(candidate.terms.split(" ")):
            signs += weights.tells_when
        entry.signs = times * signs
        entry.score = share + entry.meaning + entry.signs


def _lift_sessions(scored: Sequence[Scored], weights: Weights) -> None:
    """Where one message fits well, the rest of its session is likelier too."""
    best: dict[int, float] = {}
    for entry in scored:
        session = entry.candidate.session
        if entry.score > best.get(session, 0.0):
            best[session] = entry.score
    for entry in scored:
        entry.session = weights.session * best[entry.candidate.session]
        entry.score += entry.session


def without_repeats(
    scored: Iterable[Scored], limit: int, weights: Weights | None = None, *, by_age: bool = True
) -> list[Scored]:
    """The first *limit*: repetitions left out and, if *by_age*, corrections before what they correct."""
    weights = weights or Weights()
    kept: list[tuple[Scored, frozenset[str]]] = []
    for entry in scored:
        terms = frozenset(entry.candidate.terms.split(" "))
        place = len(kept)
        for i, (other, other_terms) in enumerate(kept):
            alike = _alike(terms, other_terms, weights.corrects)
            if alike >= weights.same and _says_the_same(terms, other_terms, alike):
                if entry.candidate.time > other.candidate.time:
                    kept[i] = entry, terms
                place = -1
                break
            newer = by_age and entry.candidate.time > other.candidate.time
            may = entry.candidate.author == other.candidate.author or entry.candidate.role == Role.FACT
            if alike >= weights.corrects and newer and may:
                place = min(place, i)
        if place >= 0:
            kept.insert(place, (entry, terms))
        if len(kept) >= limit:
            break
    return [entry for entry, _ in kept[:limit]]


def _alike(one: frozenset[str], other: frozenset[str], least: float) -> float:
    """The share of terms that two texts have in common; 0 where it cannot reach *least*."""
    if not least * len(one) <= len(other) <= len(one) / least:
        return 0.0
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0


def _says_the_same(one: frozenset[str], other: frozenset[str], alike: float) -> bool:
    """Whether two texts so alike differ in nothing that matters: a number that differs is news."""
    return alike == 1.0 or not any(any(c.isdigit() for c in term) for term in one ^ other)
