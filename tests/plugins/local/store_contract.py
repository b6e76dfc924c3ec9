"""What every store of local memory must keep to. A store's tests subclass ``StoreContract`` and open it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.plugins.memory.local import text
from hermes.plugins.memory.local.recall import Recall
from hermes.plugins.memory.local.records import Role, Store, Turn


class StoreContract:
    """Subclass it and say how a store is opened; a store that is opened at the same place holds the same."""

    def open(self, place: Path) -> Store:
        """The store under test."""
        raise NotImplementedError(place)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """A store with two sessions of one person and one of another."""
        store = self.open(tmp_path)
        store.add(
            [
                Turn("s1", f"apple number {i}", f"pear number {i}", 100.0 + i, "Ann", f"k{i}")
                for i in range(3)
            ],
            "ann",
        )
        store.add([Turn("s2", "an apple again", "", 200.0, "Ann")], "ann")
        store.add([Turn("s1", "a secret apple", "", 300.0, "Bob")], "bob")
        yield store
        store.close()

    def test_a_turn_is_there_for_whoever_opens_it_next(self, tmp_path: Path, store: Store) -> None:
        """What ``add`` returned for is durable."""
        other = self.open(tmp_path)
        assert [r.text for r in other.listing("ann", session_id="s2")] == ["an apple again"]
        other.close()

    def test_a_key_is_stored_once(self, store: Store) -> None:
        """A turn with a key that is known is not stored again, within a batch or later."""
        again = Turn("s1", "said twice", "", 400.0, "Ann", "same")
        assert store.add([again, again], "ann") == 1
        assert store.add([again, Turn("s1", "new", "", 401.0, "Ann", "other")], "ann") == 1
        assert sum(r.text == "said twice" for r in store.listing("ann")) == 1

    def test_without_a_key_equal_turns_are_two(self, store: Store) -> None:
        """Somebody may say the same thing twice."""
        assert store.add([Turn("s3", "yes please", "", 1.0)] * 2, "ann") == 2

    def test_half_a_turn_is_no_message(self, store: Store) -> None:
        """An empty half is left out, and an empty turn stores nothing."""
        assert [r.role for r in store.listing("ann", session_id="s2")] == [Role.USER]
        assert store.add([Turn("s4", "", " \n", 1.0)], "ann") == 0

    def test_a_view_sees_its_scopes_alone(self, store: Store) -> None:
        """Neither postings nor candidates, records, sessions or sizes tell of another scope."""
        (secret,) = (r.id for r in store.listing("bob"))
        with store.view("ann") as view:
            assert view is not None
            assert view.size.messages == 7
            assert view.size.authors == ("Ann",)
            assert view.postings(text.terms("secret"), 10).ids == []
            assert view.candidates([secret], 2) == []
            assert view.records([secret]) == []
            assert len(view.sessions_named(["s1", "s2"])) == 2
            assert view.between(250.0, 350.0, 10) == []

    def test_a_view_of_nothing_is_none(self, store: Store) -> None:
        """A scope that nothing is stored for has no view."""
        with store.view("nobody") as view:
            assert view is None

    def test_several_scopes_are_seen_together(self, store: Store) -> None:
        """A search may look in more than one scope."""
        with store.view("ann", "bob") as view:
            assert view is not None
            assert len(view.postings(text.terms("apple"), 10).ids) == 5

    def test_postings_give_the_newest_and_tell_how_many(self, store: Store) -> None:
        """At most *limit*, newest sessions first; the total is right where all were given."""
        with store.view("ann") as view:
            assert view is not None
            found = view.postings(text.terms("apple"), 10)
            assert found.total == len(found.ids) == 4
            assert view.records(found.ids[:1])[0].session_id == "s2"
            assert len(view.postings(text.terms("apple"), 2).ids) == 2
            assert view.postings("appl", 10).ids == found.ids
            assert view.postings("num", 10).ids == []
            assert len(view.postings("num", 10, prefix=True).ids) == 6

    def test_candidates_come_with_their_neighbours(self, store: Store) -> None:
        """*around* places before and after in the session, never of another one."""
        first = next(iter(store.listing("ann", session_id="s1")))
        with store.view("ann") as view:
            assert view is not None
            found = sorted(view.candidates([first.id], 2), key=lambda c: c.place)
            assert [c.terms for c in found] == [
                text.terms(t) for t in ("apple number 0", "pear number 0", "apple number 1")
            ]
            assert [(c.role, c.author, c.time) for c in found[:2]] == [(0, "Ann", 100.0), (1, "", 100.0)]
            assert {c.session for c in found} == {view.session_of(first.id)}
            assert [c.place for c in found] == [0, 1, 2]

    def test_records_come_in_the_order_asked_for(self, store: Store) -> None:
        """And what is not there is left out."""
        ids = [r.id for r in store.listing("ann")]
        with store.view("ann") as view:
            assert view is not None
            assert [r.id for r in view.records([ids[3], 1 << 60, ids[0]])] == [ids[3], ids[0]]

    def test_between_finds_what_was_said_then(self, store: Store) -> None:
        """The end is not part of the span."""
        with store.view("ann") as view:
            assert view is not None
            found = view.records(view.between(101.0, 102.0, 10))
            assert [r.text for r in found] == ["apple number 1", "pear number 1"]

    def test_what_is_forgotten_is_nowhere(self, store: Store) -> None:
        """Not in a listing, a posting, a candidate or a size; what others have stays."""
        ids = [r.id for r in store.listing("ann", session_id="s1")]
        assert store.forget("ann", ids=ids[:2]) == 2
        with store.view("ann") as view:
            assert view is not None
            assert view.size.messages == 5
            assert not set(ids[:2]) & set(view.postings(text.terms("apple"), 10).ids)
            assert view.candidates(ids[:2]) == []
        assert store.forget("ann", session_id="s1") == 4
        assert [r.session_id for r in store.listing(None)] == ["s2", "s1"]
        assert store.forget(None) == 2
        assert list(store.listing(None)) == []

    def test_nobody_forgets_what_others_have(self, store: Store) -> None:
        """Ids of another scope are left alone."""
        ids = [r.id for r in store.listing("bob")]
        assert store.forget("ann", ids=ids) == 0
        assert len(list(store.listing("bob"))) == 1

    def test_a_search_works_over_it(self, store: Store) -> None:
        """The ranking needs nothing of a store but this contract."""
        hits = Recall(store, ["ann"]).search("apple number 2", now=500.0, limit=3)
        assert hits[0].record.text == "apple number 2"

    def test_a_model_without_vectors_has_none(self, store: Store) -> None:
        """A view says so where nothing is embedded."""
        with store.view("ann") as view:
            assert view is not None
            assert view.vectors("no such model") is None
