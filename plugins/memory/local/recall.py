"""Finding what is known about a question: terms to candidates to an order, over any store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hermes.plugins.memory.local.options import LATE, LEXICAL, SEMANTIC
from hermes.plugins.memory.local.question import Question, may_begin_a_compound, understand
from hermes.plugins.memory.local.ranking import Scored, Statistics, Weights, rank, refine, without_repeats
from hermes.plugins.memory.local.records import Candidate, Record, Store, Vectors, View

FIRST_LOOK = 200
"""Messages looked up per term before it is known how common the terms are."""
BUDGET = 3_000
"""Messages looked up for all terms of one question."""
RESCORED = 30
"""Messages that are compared in full, at least; more where more results are asked for."""
AROUND = 2
NEAREST = 100
"""Messages that are found by meaning."""
COMPARED = 100
"""Messages that are compared token by token."""
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


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a record was found. *shares* add up to the score before the last tier put the best at 1.

    *terms* of the question that it holds; *cosine* to the question, if it has a vector; its places in the
    order by words alone and by words and meaning, 0 for none.
    """

    record: Record
    score: float
    relevant: bool
    shares: Mapping[str, float]
    terms: tuple[str, ...]
    cosine: float | None
    by_words: int
    by_meaning: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The tier that answered, how many messages hold each term of the question, and why each record was found."""

    tier: str
    terms: Mapping[str, int]
    reasons: Sequence[Reason]


class AskedMeaning(Protocol):
    """A question as a model has it: its vectors, compared with those of a store."""

    @property
    def model(self) -> str:
        """Whose vectors they are."""

    def nearest(self, vectors: Vectors, limit: int) -> dict[int, float]:
        """The *limit* messages nearest to the question, with their cosine."""

    def closeness(self, vectors: Vectors, messages: list[int]) -> dict[int, float]:
        """The cosines of those of *messages* that have vectors."""

    def compare(
        self, vectors: Vectors, messages: list[int], weights: Mapping[str, float]
    ) -> dict[int, float]:
        """How near *messages* are token by token, given how much each term tells; empty where that is not done."""


class Asks(Protocol):
    """What makes questions into vectors."""

    def ask(self, asked: str) -> AskedMeaning | None:
        """*asked* in vectors; None where words must do."""


@dataclass(slots=True)
class Findings:
    """What a search came to: everything in order, and of each step what the next needs."""

    question: Question
    known: Statistics
    candidates: list[Candidate]
    close: dict[int, float]
    by_meaning: list[Scored]
    scored: list[Scored]
    related: float = 2.0

    @property
    def tier(self) -> str:
        """What took part."""
        if not self.close:
            return LEXICAL
        return LATE if self.scored is not self.by_meaning else SEMANTIC


class Recall:
    """Searches *scopes* of a store, by words and, with *meaning*, by meaning too."""

    def __init__(
        self,
        store: Store,
        scopes: Sequence[str],
        weights: Weights | None = None,
        meaning: Asks | None = None,
    ) -> None:
        self._store = store
        self._scopes = scopes
        self._weights = weights or Weights()
        self._meaning = meaning

    def search(self, asked: str, *, now: float, limit: int, without: Sequence[str] = ()) -> list[Hit]:
        """The *limit* best records for *asked*, said at *now*; the sessions *without* are left out."""
        meant = self._meaning.ask(asked) if self._meaning else None
        with self._store.view(*self._scopes) as view:
            if view is None or not view.size.messages:
                return []
            found = self._find(view, asked, meant, now=now, limit=limit, without=without)
            best = self._best(found, limit)
            relevant = _relevant(found)
            records = {r.id: r for r in view.records([s.candidate.id for s in best])}
        ids = [(s.candidate.id, s.score) for s in best]
        return [Hit(records[i], score, i in relevant) for i, score in ids if i in records]

    def explain(self, asked: str, *, now: float, limit: int, without: Sequence[str] = ()) -> Explanation:
        """Why ``search`` gives what it gives, and what each tier adds."""
        meant = self._meaning.ask(asked) if self._meaning else None
        with self._store.view(*self._scopes) as view:
            if view is None or not view.size.messages:
                return Explanation(LEXICAL, {}, [])
            found = self._find(view, asked, meant, now=now, limit=limit, without=without)
            best = self._best(found, limit)
            relevant = _relevant(found)
            words = found.scored
            if found.close:
                words = rank(found.question, found.candidates, found.known, self._weights)
            records = {r.id: r for r in view.records([s.candidate.id for s in best])}
        places = [
            {s.candidate.id: place for place, s in enumerate(order, 1)}
            for order in (words, found.by_meaning if found.close else [])
        ]
        reasons = [
            _reason(s, records[s.candidate.id], found, relevant, *places)
            for s in best
            if s.candidate.id in records
        ]
        holding = {term.text: found.known.holding.get(term.text, 0) for term in found.question.terms}
        return Explanation(found.tier, holding, reasons)

    def _find(
        self,
        view: View,
        asked: str,
        meant: AskedMeaning | None,
        *,
        now: float,
        limit: int,
        without: Sequence[str],
    ) -> Findings:
        question = understand(asked, now, view.size.authors)
        holds, total = _look_up(view, question)
        skip = view.sessions_named(without) if without else set()
        if skip:
            holds = {m: held for m, held in holds.items() if view.session_of(m) not in skip}
        vectors = view.vectors(meant.model) if meant and (question.terms or question.when is None) else None
        near = meant.nearest(vectors, NEAREST) if meant and vectors else {}
        count = max(RESCORED, 2 * limit)
        candidates = [
            c for c in _candidates(view, question, holds, total, count, near) if c.session not in skip
        ]
        known = Statistics(view.size.messages, view.size.mean_terms, total)
        if not (meant and vectors and candidates):
            scored = rank(question, candidates, known, self._weights) or _by_time_alone(question, candidates)
            return Findings(question, known, candidates, {}, scored, scored)
        others = [c.id for c in candidates if c.id not in near]
        close = near | meant.closeness(vectors, others)
        scored = by_meaning = rank(question, candidates, known, self._weights, close)
        first = [s.candidate.id for s in scored[:COMPARED]]
        weights = {term.text: known.weight(term) for term in question.terms}
        if tokens := meant.compare(vectors, first, weights):
            scored = refine([replace(s) for s in scored], tokens, self._weights)
        return Findings(question, known, candidates, close, by_meaning, scored, vectors.related)

    def _best(self, found: Findings, limit: int) -> list[Scored]:
        return without_repeats(found.scored, limit, self._weights, by_age=found.question.when is None)


def _reason(
    scored: Scored,
    record: Record,
    found: Findings,
    relevant: set[int],
    by_words: Mapping[int, int],
    by_meaning: Mapping[int, int],
) -> Reason:
    number = scored.candidate.id
    return Reason(
        record,
        scored.score,
        number in relevant,
        {
            "words": scored.words,
            "neighbours": scored.neighbours,
            "meaning": scored.meaning,
            "signs": scored.signs,
            "session": scored.session,
            "tokens": scored.tokens,
        },
        tuple(t.text for i, t in enumerate(found.question.terms) if scored.candidate.holds >> i & 1),
        found.close.get(number),
        by_words.get(number, 0),
        by_meaning.get(number, 0),
    )


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
    view: View,
    question: Question,
    holds: dict[int, int],
    total: dict[str, int],
    count: int,
    near: Iterable[int],
) -> list[Candidate]:
    """The *count* messages that are most worth comparing in full, with what stands around them."""
    known = Statistics(view.size.messages, 1.0, total)
    each = [known.weight(term) for term in question.terms]
    worth = {mask: sum(w for i, w in enumerate(each) if mask >> i & 1) for mask in set(holds.values())}
    ids = sorted(holds, key=lambda m: (-worth[holds[m]], -m))[:count]
    for start, end in question.spans:
        ids.extend(view.between(start, end, count))
    found = view.candidates(ids, AROUND)
    if more := set(near).difference(c.id for c in found):
        found += view.candidates(list(more))
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


def _relevant(found: Findings) -> set[int]:
    """Ids of what is offered unasked: a rare term or two stand there or right beside it, or it means the same."""
    question, scored, known = found.question, found.scored, found.known
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
        and (
            found.close.get(s.candidate.id, -1.0) >= found.related
            or any((s.candidate.session, s.candidate.place + step) in good for step in (0, -1, 1))
        )
    }
