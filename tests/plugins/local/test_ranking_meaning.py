"""How closeness by meaning and by tokens goes into the order, whatever it was measured with."""

from __future__ import annotations

import pytest

from hermes.plugins.memory.local import text
from hermes.plugins.memory.local.question import understand
from hermes.plugins.memory.local.ranking import Scored, Statistics, Weights, rank, refine
from hermes.plugins.memory.local.records import Candidate

SAID = ("the boiler was serviced", "our heating broke down", "lunch at noon was late", "ok")


def candidates() -> list[Candidate]:
    """One message for each text, each in a session of its own."""
    return [Candidate(i, i, 0, 0, "", float(i), text.terms(said), holds=1) for i, said in enumerate(SAID)]


def order(close: dict[int, float] | None) -> list[Scored]:
    """The candidates for "boiler", given how close they are."""
    known = Statistics(100, 5.0, {"boiler": 1})
    return rank(understand("boiler", 0.0), candidates(), known, close=close)


def test_without_vectors_words_are_all_there_is() -> None:
    """Only what holds the word is found."""
    assert [s.candidate.id for s in order(None)] == [0]


def test_what_is_close_is_found_after_what_also_holds_the_word() -> None:
    """A message without the word is found by its meaning; too short a one is not."""
    found = order({0: 0.6, 1: 0.5, 2: 0.1, 3: 0.4})
    assert [s.candidate.id for s in found] == [0, 1, 2]
    assert found[0].meaning == Weights().meaning
    assert found[1].meaning == pytest.approx(Weights().meaning * 0.5 / 0.6)
    assert found[1].words == 0


def test_a_cosine_below_zero_adds_nothing() -> None:
    """The opposite of a question is no answer, and no less an answer than what has nothing to do with it."""
    found = {s.candidate.id: s.meaning for s in order({0: 0.6, 1: -0.5, 2: 0.0})}
    assert found[1] == found[2] == 0


def test_what_has_no_vector_yet_is_not_put_last() -> None:
    """A message that was just stored counts as being as near as its words say."""
    found = order({1: 0.5, 2: 0.4})
    assert found[0].candidate.id == 0
    assert found[0].meaning == Weights().meaning


def test_tokens_reorder_the_best() -> None:
    """The nearest token by token gains the whole weight, the farthest nothing."""
    found = order({0: 0.6, 1: 0.58, 2: 0.1})
    again = refine(found, {0: 0.2, 1: 0.9, 2: 0.2})
    assert [s.candidate.id for s in again] == [1, 0, 2]
    assert {s.candidate.id: s.tokens for s in again} == {0: 0, 1: Weights().tokens, 2: 0}


def test_without_tokens_the_order_stays() -> None:
    """Where nothing is compared token by token, nothing changes."""
    found = order({0: 0.6, 1: 0.5})
    assert refine(found, {}) is found


def test_shares_add_up_to_the_score() -> None:
    """What is shown as the reasons for a score is all of it."""
    for entry in order({0: 0.6, 1: 0.5, 2: 0.1}):
        parts = entry.words, entry.neighbours, entry.meaning, entry.signs, entry.session
        assert sum(parts) == pytest.approx(entry.score)
