"""Finding by meaning, over an embeddings endpoint: what is found, what is sent, what happens when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.plugins.memory.local.provider import LocalMemoryProvider
from hermes.plugins.memory.local.store import SqliteStore
from tests.plugins.local.embedding.conftest import Open, found, settled, tell, until
from tests.plugins.local.embedding.server import WIDTH, Endpoint

SAID = (
    "Our cat sleeps on the radiator",
    "The car needs new tyres before winter",
    "Yesterday we baked plum cake",
    "The choir sings on Thursdays",
)


def models_of(provider: LocalMemoryProvider) -> list[str]:
    """The models that there are vectors of."""
    store = provider.memory.store
    assert isinstance(store, SqliteStore)
    return [model.name.partition("@")[0] for model in store.vectors().models()]


def test_finds_what_shares_no_word_with_the_question(by_meaning: Open) -> None:
    """A message that means what is asked is found though it holds none of the words."""
    provider = by_meaning()
    tell(provider, *SAID)
    settled(provider)
    assert found(provider, "Where does my pet doze?")[0] == SAID[0]
    assert found(provider, "automobile repairs")[0] == SAID[1]


def test_words_alone_do_not(open_local: Open) -> None:
    """Without a model the same question finds nothing."""
    provider = open_local(tier="lexical")
    tell(provider, *SAID)
    assert found(provider, "Where does my pet doze?") == []


def test_recall_works_before_anything_is_embedded(by_meaning: Open, server: Endpoint) -> None:
    """While nothing has a vector yet, words find what they always find."""
    server.failing = 503
    provider = by_meaning()
    tell(provider, *SAID)
    assert found(provider, "plum cake", 1) == [SAID[2]]


def test_a_failing_endpoint_is_told_and_taken_up_again(by_meaning: Open, server: Endpoint) -> None:
    """Status says what is wrong; the next process embeds what is missing."""
    server.failing = 503
    provider = by_meaning()
    tell(provider, *SAID)
    status = until(provider, lambda status: "problem" in status)
    assert "HTTP 503" in status["problem"]
    assert status["to_embed"] == len(SAID)
    provider.shutdown()
    server.failing = 0
    again = by_meaning()
    tell(again, "One more")
    assert settled(again)["embedded"] == len(SAID) + 1


def test_status_names_the_tier_and_the_next(by_meaning: Open, server: Endpoint) -> None:
    """Status says which tier is in use, whose vectors, how far they are, and what leads further."""
    provider = by_meaning()
    tell(provider, *SAID)
    status = settled(provider)
    assert status["tier"] == "semantic"
    assert status["model"] == f"m at {server.url}"
    assert status["embedded"] == len(SAID)
    assert status["next_tier"] == "hermes local model install"


def test_the_key_is_a_secret_of_the_profile(by_meaning: Open, server: Endpoint) -> None:
    """The endpoint is given the secret that the settings name."""
    provider = by_meaning(endpoint_key="EMBEDDING_KEY")
    tell(provider, *SAID)
    settled(provider)
    assert set(server.keys) == {"Bearer sk-embed"}


def test_without_the_key_words_must_do(by_meaning: Open) -> None:
    """A secret that is not there is told, and recall goes on by words."""
    provider = by_meaning(endpoint_key="NO_SUCH_KEY")
    tell(provider, *SAID)
    assert found(provider, "plum cake", 1) == [SAID[2]]
    assert "NO_SUCH_KEY" in until(provider, lambda status: "problem" in status)["problem"]


def test_what_others_said_is_not_found(open_local: Open, server: Endpoint) -> None:
    """Vectors are looked for in the scopes of the session alone."""
    settings = {"endpoint": server.url, "model": "m"}
    one = open_local("s1", given={"user_id": "1", "platform": "telegram"}, **settings)
    tell(one, *SAID)
    settled(one)
    other = open_local("s2", given={"user_id": "2", "platform": "telegram"}, **settings)
    tell(other, "We purchased a lamp")
    settled(other)
    assert found(other, "Where does my pet doze?") == ["We purchased a lamp"]


def test_a_new_model_takes_over_without_a_gap(by_meaning: Open, server: Endpoint) -> None:
    """While the texts are embedded anew the former vectors serve; after that they are gone."""
    first = by_meaning()
    tell(first, *SAID)
    settled(first)
    first.shutdown()
    second = by_meaning(model="m2")
    assert found(second, "Where does my pet doze?")[0] == SAID[0]
    assert models_of(second) == ["m"]
    tell(second, "And the dog barks", session="later")
    until(second, lambda status: status["embedded"] == len(SAID) + 1 and "to_embed" not in status)
    until(second, lambda _: models_of(second) == ["m2"])
    assert found(second, "Where does my pet doze?")[0] == SAID[0]


def test_an_endpoint_that_changes_its_mind_is_refused(by_meaning: Open, server: Endpoint) -> None:
    """Vectors of another length than before are no vectors of this model."""
    provider = by_meaning()
    tell(provider, *SAID)
    settled(provider)
    server.width = WIDTH // 2
    tell(provider, "Something new", session="later")
    assert "other lengths" in until(provider, lambda status: "problem" in status)["problem"]
    assert found(provider, "plum cake")[0] == SAID[2]


@pytest.mark.parametrize("asked", ["猫在哪里睡觉", "где спит мой кот", "أين تنام القطة"])
def test_every_script_is_asked_of_an_endpoint(by_meaning: Open, server: Endpoint, asked: str) -> None:
    """An endpoint's model may read any script."""
    provider = by_meaning()
    tell(provider, *SAID)
    settled(provider)
    found(provider, asked)
    assert asked in server.texts


def test_why_says_what_meaning_added(by_meaning: Open) -> None:
    """The explanation names the tier, the cosine, and the place that a record had by words alone."""
    provider = by_meaning()
    tell(provider, *SAID)
    settled(provider)
    why = provider.memory.explain("Where does my pet sleep?", 2)
    assert why.tier == "semantic"
    assert why.terms == {"pet": 0, "sleep": 1}
    first = why.reasons[0]
    assert first.record.text == SAID[0]
    assert first.terms == ("sleep",)
    assert first.by_words == first.by_meaning == 1
    assert first.cosine is not None
    assert first.cosine > 0.2
    assert sum(first.shares.values()) == pytest.approx(first.score)


def test_why_shows_what_words_would_have_missed(by_meaning: Open) -> None:
    """A record that no word leads to has no place in the order by words."""
    provider = by_meaning()
    tell(provider, *SAID)
    settled(provider)
    (reason,) = provider.memory.explain("automobile", 1).reasons
    assert reason.record.text == SAID[1]
    assert (reason.by_words, reason.by_meaning) == (0, 1)
    assert reason.shares["words"] == 0
    assert reason.shares["meaning"] > 0


def test_meaning_alone_is_offered_when_it_is_near(by_meaning: Open) -> None:
    """A message that shares no word is given to the model unasked only if it is really near."""
    provider = by_meaning()
    tell(provider, "pet food", "The choir sings on Thursdays")
    settled(provider)
    assert "pet food" in provider.prefetch("animal food")
    assert provider.prefetch("quarterly tax forms") == ""


def test_a_look_embeds_nothing(by_meaning: Open, home: Path, server: Endpoint) -> None:
    """Commands that only look leave the texts for the process that talks."""
    writer = by_meaning(tier="lexical")
    tell(writer, *SAID)
    looking = by_meaning("look")
    looking.initialize_for_inspection("look", hermes_home=str(home), platform="cli")
    found(looking, "plum cake")
    assert looking.get_status_config({})["to_embed"] == len(SAID)


def test_a_process_that_ends_at_once_embeds_what_it_stored(by_meaning: Open) -> None:
    """Where every turn has a process of its own, texts get their vectors all the same."""
    short = by_meaning()
    tell(short, *SAID)
    short.shutdown()
    assert by_meaning("look").get_status_config({})["embedded"] == len(SAID)


def test_what_a_killed_process_left_is_taken_up(
    by_meaning: Open, server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that were stored and never embedded get their vectors from whoever comes next."""
    writer = by_meaning(tier="lexical")  # as if it had ended before it came to that
    tell(writer, *SAID)
    writer.shutdown()
    monkeypatch.setattr("hermes.plugins.memory.local.embedding.background.AT_ONCE", 1)
    later = by_meaning()
    tell(later, "The dog barks", session="later")
    settled(later)
    later.shutdown()
    assert sorted(server.texts).count(SAID[0]) == 1, "a text is sent once"
    assert by_meaning("look").get_status_config({})["embedded"] == len(SAID) + 1
