"""Facts: remembered, corrected, pinned, expired, used, forgotten; what a search finds of them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes.plugins.memory.local.provider import LocalMemoryProvider

Open = Callable[..., LocalMemoryProvider]
DAY = 86_400.0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0


@pytest.fixture
def clock() -> Clock:
    """Stands still until it is moved."""
    return Clock()


@pytest.fixture
def provider(open_local: Open, clock: Clock) -> LocalMemoryProvider:
    """A provider whose person is called Ann."""
    return open_local(clock=lambda: clock.now, user_name="Ann")


def call(provider: LocalMemoryProvider, tool: str, **args: Any) -> Any:
    """What a tool answers."""
    return json.loads(provider.handle_tool_call(tool, args))


def remember(provider: LocalMemoryProvider, text: str, **args: Any) -> int:
    """Remember a fact; its id."""
    reply = call(provider, "local_remember", text=text, **args)
    assert reply["new"], reply
    return int(reply["remembered"]["id"])


def found(provider: LocalMemoryProvider, query: str) -> list[str]:
    """The texts that a search gives, in order."""
    return [result["text"] for result in call(provider, "local_search", query=query)["results"]]


def facts(provider: LocalMemoryProvider, *, former: bool = False) -> list[dict[str, Any]]:
    """The facts that are exported."""
    return [
        record
        for record in provider.export_records()
        if record["role"] == "fact" and (former or "ended" not in record)
    ]


# -- remembering --------------------------------------------------------------------------------------------


def test_a_fact_knows_where_it_comes_from(provider: LocalMemoryProvider, clock: Clock) -> None:
    """Session, turn, tool, person and time are kept, and it has not been used yet."""
    provider.on_turn_start(7, "Please remember that I work at Acme")
    fact = remember(provider, "Ann works at Acme")
    assert facts(provider) == [
        {
            "id": fact,
            "role": "fact",
            "text": "Ann works at Acme",
            "time": clock.now,
            "session_id": "s1",
            "turn": 7,
            "tool": "local_remember",
            "person": "Ann",
        }
    ]


@pytest.mark.parametrize("again", ["Ann works at Acme", "ann WORKS at  acme!", " Ann works at Acme.\n"])
def test_the_same_fact_twice_is_one(provider: LocalMemoryProvider, again: str) -> None:
    """Case, space and punctuation make no other fact, and nothing is deleted for it."""
    fact = remember(provider, "Ann works at Acme")
    reply = call(provider, "local_remember", text=again)
    assert (reply["new"], reply["remembered"]["id"]) == (False, fact)
    assert [f["text"] for f in facts(provider)] == ["Ann works at Acme"]


def test_what_may_be_contradicted_is_told(provider: LocalMemoryProvider, clock: Clock) -> None:
    """A fact much like another is kept beside it, newest first, and the model is told of the other."""
    old = remember(provider, "Ann has worked at Acme for 5 years")
    clock.now += DAY
    reply = call(provider, "local_remember", text="Ann has worked at Acme for 6 years")
    assert [fact["id"] for fact in reply["similar"]] == [old]
    assert "local_update" in reply["next_step"]
    assert found(provider, "how long at Acme?")[:2] == [
        "Ann has worked at Acme for 6 years",
        "Ann has worked at Acme for 5 years",
    ]
    assert "similar" not in call(provider, "local_remember", text="The cat is called Minka")


def test_a_fact_comes_before_the_turn_it_was_made_of(provider: LocalMemoryProvider) -> None:
    """What was remembered on purpose outranks what was said in passing."""
    provider.sync_turn("the meeting with Bo is on Monday", "Noted.", session_id="old")
    fact = remember(provider, "The meeting with Bo is on Monday")
    call(provider, "local_update", id=fact, text="The meeting with Bo is on Tuesday at noon")
    assert found(provider, "when is the meeting with Bo?")[0].endswith("on Tuesday at noon")


def test_a_run_without_a_person_writes_nothing(open_local: Open) -> None:
    """Where nobody takes part, only looking is offered, and a call that writes is refused."""
    job = open_local(agent_context="cron")
    assert [s["name"] for s in job.get_tool_schemas()] == ["local_search", "local_list"]
    for tool, args in (("local_remember", {"text": "x"}), ("local_forget", {"ids": [1]})):
        assert "cron" in call(job, tool, **args)["error"]
    assert call(job, "local_list", facts=True) == {"results": []}


# -- correcting ---------------------------------------------------------------------------------------------


def test_a_corrected_fact_is_not_found_any_more(provider: LocalMemoryProvider) -> None:
    """The new text takes its place in search, list and recall; the old one stays in the history."""
    old = remember(provider, "Ann lives in Lisbon", pinned=True)
    new = call(provider, "local_update", id=old, text="Ann lives in Porto")["updated"]
    assert new["pinned"]
    assert found(provider, "where does Ann live") == ["Ann lives in Porto"]
    assert found(provider, "Lisbon") == []
    assert "Lisbon" not in provider.prefetch("does Ann live in Lisbon?")
    (was, holds) = facts(provider, former=True)
    assert (was["text"], was["successor"], "pinned" in was) == ("Ann lives in Lisbon", holds["id"], False)


def test_two_changes_of_one_version(provider: LocalMemoryProvider) -> None:
    """The second is told what holds now, and nothing is lost."""
    old = remember(provider, "Ann lives in Lisbon")
    new = call(provider, "local_update", id=old, text="Ann lives in Porto")["updated"]["id"]
    reply = call(provider, "local_update", id=old, text="Ann lives in Braga")
    assert reply["current"] == "Ann lives in Porto"
    assert str(new) in reply["error"]
    assert found(provider, "where does Ann live") == ["Ann lives in Porto"]


def test_the_same_text_is_no_change(provider: LocalMemoryProvider) -> None:
    """Correcting a fact by itself makes no history."""
    fact = remember(provider, "Ann lives in Lisbon")
    assert call(provider, "local_update", id=fact, text="Ann lives in Lisbon")["updated"]["id"] == fact
    assert len(facts(provider, former=True)) == 1


def test_ids_are_never_used_twice(provider: LocalMemoryProvider) -> None:
    """An id that a model still has in mind does not come to mean something else."""
    first = remember(provider, "Ann lives in Lisbon")
    call(provider, "local_forget", ids=[first])
    second = remember(provider, "The cat is called Minka")
    assert second != first
    assert "no fact" in call(provider, "local_update", id=first, text="x y z")["error"]


# -- pinned, expired, used ----------------------------------------------------------------------------------


def test_pinned_facts_are_always_there(provider: LocalMemoryProvider) -> None:
    """First, whatever is asked; no more than five; not for small talk."""
    for number in range(7):
        remember(provider, f"Rule number {number} about topic{number}", pinned=True)
    lines = provider.prefetch("what about zeppelins and topic1?").split("\n")[1:]
    assert len(lines) == 5
    assert lines[0].endswith("Rule number 1 about topic1")  # the one that fits comes first
    assert provider.prefetch("thanks!") == ""


def test_a_fact_expires(provider: LocalMemoryProvider, clock: Clock) -> None:
    """Past its time it is neither found nor shown, at once; it stays in the history. A pinned one stays."""
    remember(provider, "The code of the week is 4471", expires="1d")
    kept = remember(provider, "The alarm of the week is 4482", expires="1d", pinned=True)
    assert len(found(provider, "of the week")) == 2
    clock.now += 2 * DAY
    assert found(provider, "code of the week") == ["The alarm of the week is 4482"]
    assert "4471" not in provider.prefetch("code of the week")
    provider.sync_turn("anything", "")  # the upkeep puts it away
    assert [(f["text"][-4:], "ended" in f) for f in facts(provider, former=True)] == [
        ("4471", True),
        ("4482", False),
    ]
    call(provider, "local_update", id=kept, pinned=False)
    assert found(provider, "alarm of the week") == []


@pytest.mark.parametrize("expires", ["never", "2100-01-01", "30d", "12h"])
def test_a_time_that_can_be_meant(provider: LocalMemoryProvider, expires: str) -> None:
    """A date, a span, or never."""
    fact = remember(provider, "The lease ends")
    reply = call(provider, "local_update", id=fact, expires=expires)["updated"]
    assert ("expires" in reply) == (expires != "never")


@pytest.mark.parametrize(
    "args",
    [
        {"text": "x", "expires": "soon"},
        {"text": "x", "expires": "2001-01-01"},
        {"text": "x", "expires": 5},
        {"text": "x" * 3000},
        {"text": " "},
        {"text": ["x"]},
        {},
        {"text": "x", "pinned": "maybe"},
    ],
)
def test_what_cannot_be_remembered(provider: LocalMemoryProvider, args: dict[str, Any]) -> None:
    """The answer says what is expected, and nothing is stored."""
    assert set(call(provider, "local_remember", **args)) == {"error", "next_step"}
    assert facts(provider) == []


@pytest.mark.parametrize(
    "args", [{}, {"id": 5}, {"id": 5, "text": "x"}, {"id": "a", "text": "x"}, {"id": [5], "pinned": True}]
)
def test_what_cannot_be_updated(provider: LocalMemoryProvider, args: dict[str, Any]) -> None:
    """An unknown id, or nothing to change."""
    assert "error" in call(provider, "local_update", **args)


def test_uses_are_counted_without_a_write_on_the_way(provider: LocalMemoryProvider, home: Path) -> None:
    """Recall changes no byte; the count is written with the next turn, or at the end."""
    remember(provider, "Ann lives in Lisbon")
    file = home / "local" / "memory.db"

    def version() -> int:
        with closing(sqlite3.connect(file)) as db:
            return int(db.execute("SELECT sum(uses) FROM memories").fetchone()[0])

    before = (file.read_bytes(), Path(f"{file}-wal").read_bytes())
    provider.prefetch("where does Ann live?")
    found(provider, "Lisbon")
    assert (file.read_bytes(), Path(f"{file}-wal").read_bytes()) == before
    provider.sync_turn("hello there", "")
    assert version() == 2
    provider.prefetch("where does Ann live?")
    provider.shutdown()
    assert version() == 3


def test_looking_does_not_count_as_use(open_local: Open, home: Path) -> None:
    """A preview of what a model would be given leaves no trace."""
    provider = open_local()
    remember(provider, "Ann lives in Lisbon")
    looker = LocalMemoryProvider()
    looker.initialize_for_inspection("c", hermes_home=str(home), platform="cli")
    assert "Lisbon" in looker.prefetch("where does Ann live?")
    looker.shutdown()
    assert "uses" not in facts(provider)[0]


# -- forgetting ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["id", "session", "everything"])
def test_forgetting_a_fact_takes_what_it_corrected(
    provider: LocalMemoryProvider, home: Path, how: str
) -> None:
    """No byte is left of the fact, nor of the texts that it took the place of."""
    fact = remember(provider, "The password is xylophagerz one")
    fact = call(provider, "local_update", id=fact, text="The password is xylophagerz two")["updated"]["id"]
    provider.sync_turn("unrelated words", "", session_id="other")
    if how == "id":
        assert call(provider, "local_forget", ids=[fact])["forgotten"] == 2
    elif how == "session":
        assert provider.forget_records(session_id="s1") == 2
    else:
        assert provider.forget_records() == 3
    assert facts(provider, former=True) == []
    provider.shutdown()
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"xylophage" not in everything.lower()


def test_what_is_deleted_does_not_come_back(provider: LocalMemoryProvider, open_local: Open) -> None:
    """Neither by search nor list, nor by recall, nor after a restart, nor by what it was made of."""
    provider.sync_turn("the vault is under the stairs", "", session_id="old")
    remember(provider, "The vault is under the stairs", pinned=True)
    ids = [result["id"] for result in call(provider, "local_search", query="vault stairs")["results"]]
    reply = call(provider, "local_forget", ids=ids)
    assert [left["text"] for left in reply["left"]] == ["the vault is under the stairs"]  # the turn
    assert call(provider, "local_forget", ids=[left["id"] for left in reply["left"]]) == {
        "forgotten": 1,
        "asked": 1,
    }
    for one in (provider, open_local("again")):
        assert found(one, "vault stairs") == []
        assert call(one, "local_list") == call(one, "local_list", facts=True) == {"results": []}
        assert one.prefetch("where is the vault?") == ""
    assert remember(provider, "The vault is under the stairs") not in ids


def test_forgetting_a_session_leaves_the_facts_of_others(open_local: Open) -> None:
    """Of three facts, two from one session, one is left."""
    for session, text in (("a", "Tea is green"), ("a", "Milk is white"), ("b", "Coffee is black")):
        remember(open_local(session), text)
    owner = open_local("c")
    assert owner.forget_records(session_id="a") == 2
    assert [fact["text"] for fact in facts(owner)] == ["Coffee is black"]


def test_facts_of_others_cannot_be_touched(open_local: Open) -> None:
    """A person's tools neither find, change nor delete the fact of another."""
    one = open_local("a", platform="telegram", user_id="u1")
    two = open_local("b", platform="telegram", user_id="u2")
    fact = remember(one, "The locker code is 4471", pinned=True)
    assert "no fact" in call(two, "local_update", id=fact, text="The locker code is 1")["error"]
    assert "no fact" in call(two, "local_update", id=fact, pinned=False)["error"]
    assert call(two, "local_forget", ids=[fact])["forgotten"] == 0
    assert two.prefetch("what is the locker code?") == ""
    assert call(two, "local_list", facts=True) == {"results": []}
    assert found(one, "locker code") == ["The locker code is 4471"]


def test_status_counts_facts(provider: LocalMemoryProvider) -> None:
    """Those that hold, the pinned among them, and the former."""
    fact = remember(provider, "Ann lives in Lisbon", pinned=True)
    call(provider, "local_update", id=fact, text="Ann lives in Porto")
    shown = provider.get_status_config({})
    assert (shown["facts"], shown["pinned"], shown["former_facts"]) == (1, 1, 1)
    assert shown["turns"] == 0


# -- several at once -----------------------------------------------------------------------------------------

_REMEMBERER = """
import json, sys
from hermes.plugins.memory.local.provider import LocalMemoryProvider
home, me, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
p = LocalMemoryProvider()
p.initialize("s" + me, hermes_home=home, platform="cli")
for i in range(count):
    for text in (f"process {me} knows zebra {i}", f"everybody knows zebra {i}"):
        assert "error" not in json.loads(p.handle_tool_call("local_remember", {"text": text}))
p.shutdown()
"""


def test_processes_that_remember_at_once(home: Path, open_local: Open) -> None:
    """Every fact is there, and what all of them remember is there once."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _REMEMBERER, str(home), str(n), "10"], stderr=subprocess.PIPE, text=True
        )
        for n in range(4)
    ]
    for process in running:
        _, errors = process.communicate(timeout=100)
        assert (process.returncode, errors) == (0, "")
    known = [fact.text for fact in open_local("after").memory.store.facts(None)]
    assert len(known) == len(set(known)) == 4 * 10 + 10
