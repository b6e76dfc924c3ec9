"""Finding what is known about a question: terms to candidates to an order, over any store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.plugins.memory.local.question import Question, may_begin_a_compound, understand
from hermes.plugins.memory.local.ranking import Scored, Statistics, Weights, rank, without_repeats
from hermes.plugins.memory.local.records import Candidate, Record, Store, View

FIRST_LOOK = 200
"""Messages looked up per term before it is known how common the terms are."""
BUDGET = 3_000
"""Messages looked up for all terms of one question."""
RESCORED = 40
"""Messages that are compared in full, at least; more where more results are asked for."""
AROUND = 2
RARE_SHARE = 0.05
"""A term in at most this share of the messages makes a match by itself."""
WORTH_SHOWING = 0.35
"""What scores less than this share of the best is not offered unasked."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A record found, its score, and whether the match is good enough to be offered unasked."""

    record: Record
    score: float
    relevant: bool


class Recall:
    """Searches one scope of a store."""

    def __init__(self, store: Store, scope: str, weights: Weights | None = None) -> None:
        self._store = store
        self._scope = scope
        self._weights = weights or Weights()

    def search(self, asked: str, *, now: float, limit: int, without: Sequence[str] = ()) -> list[Hit]:
        """The *limit* best records for *asked*, said at *now*; the sessions *without* are left out."""
        with self._store.view(self._scope) as view:
            if view is None or not view.size.messages:
                return []
            question = understand(asked, now, view.size.authors)
            holds, total = _look_up(view, question)
            if without and (skip := view.sessions_named(without)):
                holds = {m: held for m, held in holds.items() if view.session_of(m) not in skip}
            else:
                skip = set()
            candidates = _candidates(view, question, holds, total, max(RESCORED, 2 * limit))
            candidates = [c for c in candidates if c.session not in skip]
            known = Statistics(view.size.messages, view.size.mean_terms, total)
            scored = rank(question, candidates, known, self._weights) or _by_time_alone(question, candidates)
            best = without_repeats(scored, limit, self._weights, by_age=question.when is None)
            relevant = _relevant(question, scored, known)
            records = {r.id: r for r in view.records([s.candidate.id for s in best])}
        ids = [(s.candidate.id, s.score) for s in best]
        return [Hit(records[i], score, i in relevant) for i, score in ids if i in records]


def _look_up(view: View, question: Question) -> tuple[dict[int, int], dict[str, int]]:
    """Which terms (a bit each) the messages hold, and how many messages hold each term."""
    lists: list[list[int]] = []
    total: dict[str, int] = {}
    for term in question.terms:
        found = view.postings(term.text, FIRST_LOOK, prefix=term.prefix)
        if found.total < 3 and not term.prefix and may_begin_a_compound(term.text):
            term.prefix = True
            found = view.postings(term.text, FIRST_LOOK, prefix=True)
        lists.append(found.ids)
        total[term.text] = found.total
    _look_further(view, question, lists, total)
    holds: dict[int, int] = {}
    for i, ids in enumerate(lists):
        bit = 1 << i
        for message in ids:
            holds[message] = holds.get(message, 0) | bit
    return holds, total


def _look_further(view: View, question: Question, lists: list[list[int]], total: dict[str, int]) -> None:
    """Spend the budget on the terms that more messages hold than the first look shows, the rarest first."""
    room = BUDGET - sum(map(len, lists))
    more = [i for i, term in enumerate(question.terms) if total[term.text] > len(lists[i])]
    for i in sorted(more, key=lambda i: total[question.terms[i].text]):
        if room <= 0:
            return
        term = question.terms[i]
        found = view.postings(term.text, len(lists[i]) + room, prefix=term.prefix)
        room -= len(found.ids) - len(lists[i])
        lists[i], total[term.text] = found.ids, found.total


def _candidates(
    view: View, question: Question, holds: dict[int, int], total: dict[str, int], count: int
) -> list[Candidate]:
    """The *count* messages that are most worth comparing in full, with what stands around them."""
    known = Statistics(view.size.messages, 1.0, total)
    each = [known.weight(term) for term in question.terms]
    worth = {mask: sum(w for i, w in enumerate(each) if mask >> i & 1) for mask in set(holds.values())}
    ids = sorted(holds, key=lambda m: (-worth[holds[m]], -m))[:count]
    for start, end in question.spans:
        ids.extend(view.between(start, end, count))
    found = view.candidates(ids, AROUND)
    cut = 0  # terms whose messages were not all looked up: they may stand anywhere
    for i, term in enumerate(question.terms):
        cut |= (total[term.text] > BUDGET // 4) << i
    for candidate in found:
        candidate.holds = holds.get(candidate.id, 0) | cut
    return found


def _by_time_alone(question: Question, candidates: Sequence[Candidate]) -> list[Scored]:
    """What was said at the time asked for, where the question holds no word that was said."""
    if question.when is None:
        return []
    then = [c for c in candidates if question.when(c.time)]
    return [Scored(c, 1.0) for c in sorted(then, key=lambda c: (c.role, c.time))]


def _relevant(question: Question, scored: Sequence[Scored], known: Statistics) -> set[int]:
    """Ids of what is offered unasked: a rare term or two terms stand there or right beside it."""
    limit = max(3.0, RARE_SHARE * known.messages)
    rare = 0
    for i, term in enumerate(question.terms):
        rare |= (known.holding.get(term.text, 0) <= limit) << i
    good = {
        (s.candidate.session, s.candidate.place)
        for s in scored
        if s.candidate.holds & rare or s.candidate.holds.bit_count() > 1 or not question.terms
    }
    least = WORTH_SHOWING * (scored[0].score if scored else 0.0)
    return {
        s.candidate.id
        for s in scored
        if s.score >= least
        and any((s.candidate.session, s.candidate.place + step) in good for step in (0, -1, 1))
    }
