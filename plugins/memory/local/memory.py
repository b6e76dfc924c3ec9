"""The memory of one session: what it may see of a store, and what has to be done to that now and then."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from hermes.errors import HermesError
from hermes.plugins.memory.local.records import Fact, Limits, Record, Source, Store

if TYPE_CHECKING:
    from hermes.plugins.memory.local.ranking import Weights
    from hermes.plugins.memory.local.recall import Asks, Explanation, Hit, Recall

log = logging.getLogger(__name__)

UPKEEP_TURNS = 25
UPKEEP_SECONDS = 300.0
"""Retention and expiry are looked after when so many turns or seconds have passed since the last time."""
UPKEEP_MOST = 400
"""Messages that are let go at once."""
ALIKE = 0.5
"""Texts that share this much of their words may speak of the same thing."""


class Memory:
    """Writes go to *scope*, searches see *scopes*."""

    def __init__(
        self,
        store: Store,
        scopes: Sequence[str],
        *,
        limits: Limits,
        clock: Callable[[], float],
        weights: Weights | None = None,
        meaning: Asks | None = None,
    ) -> None:
        self.store = store
        self._meaning = meaning
        self.scope = scopes[0]
        self.scopes = tuple(dict.fromkeys(scopes))
        self.limits = limits
        self.clock = clock
        self._weights = weights
        self._lock = threading.Lock()
        self._uses: Counter[int] = Counter()
        self._stored = UPKEEP_TURNS
        self._looked = 0.0

    # -- reading -----------------------------------------------------------------------------------------

    def recall(self, query: str, limit: int, without: Sequence[str] = ()) -> list[Hit]:
        """The *limit* best records for *query*; facts that are past their time are left out."""
        now = self.clock()
        over = self.store.expired(now)
        hits = self._search().search(query, now=now, limit=limit + len(over), without=without)
        return [hit for hit in hits if hit.record.id not in over][:limit]

    def explain(self, query: str, limit: int) -> Explanation:
        """Why ``recall`` gives what it gives."""
        return self._search().explain(query, now=self.clock(), limit=limit)

    def _search(self) -> Recall:
        from hermes.plugins.memory.local.recall import Recall

        return Recall(self.store, self.scopes, self._weights, self._meaning)

    def similar(self, text: str, but: Collection[int] = ()) -> list[Record]:
        """Messages and facts that may speak of the same thing as *text*, the likeliest first."""
        from hermes.plugins.memory.local import text as words

        said = set(words.terms(text).split())

        def alike(record: Record) -> bool:
            other = set(words.terms(record.text).split())
            return len(said & other) >= ALIKE * len(said | other)

        found = (hit.record for hit in self.recall(text, 8))
        return [record for record in found if record.id not in but and alike(record)]

    # -- facts -------------------------------------------------------------------------------------------

    def remember(
        self, text: str, source: Source, *, expires: float | None = None, pinned: bool = False
    ) -> tuple[Fact, bool]:
        """Keep a fact; the flag: it is new."""
        return self.store.remember(
            text, self.scope, self.clock(), source=source, expires=expires, pinned=pinned
        )

    def correct(self, fact: int, text: str, source: Source, *, expires: float | None = None) -> Fact:
        """Put *text* in the place of *fact*. Raises EntryNotFound."""
        return self.store.correct(fact, text, self.scopes, self.clock(), source=source, expires=expires)

    def forget(self, ids: Sequence[int]) -> int:
        """Delete messages and facts that are in sight; how many."""
        return sum(self.store.forget(scope, ids=ids) for scope in self.scopes)

    # -- upkeep ------------------------------------------------------------------------------------------

    def used(self, facts: Iterable[int]) -> None:
        """Facts were given to a model; it is written down with the next turn, not now."""
        with self._lock:
            self._uses.update(facts)

    def stored(self, turns: int) -> None:
        """Turns were stored: look after the rest, if it is time. What fails is tried again with the next."""
        with self._lock:
            self._stored += turns
            due = self._stored >= UPKEEP_TURNS or time.monotonic() - self._looked > UPKEEP_SECONDS
            if not (due or self._uses):
                return
            self._stored, self._looked = 0, time.monotonic()
        self.settle()

    def settle(self) -> None:
        """Write down what was used, and do a bounded part of what retention asks for."""
        with self._lock:
            uses, self._uses = self._uses, Counter()
        try:
            if self.store.upkeep(self.clock(), uses, self.limits, most=UPKEEP_MOST) >= UPKEEP_MOST:
                self._stored = UPKEEP_TURNS  # there is more
        except HermesError as exc:
            log.warning("the upkeep of local memory is put off: %s", exc)
            self.used(uses.elements())

    @property
    def has_uses(self) -> bool:
        """Whether something is to be written down."""
        return bool(self._uses)
