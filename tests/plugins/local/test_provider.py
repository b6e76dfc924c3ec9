"""The provider as a host uses it: store, recall, tools, notes, scopes, status."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import PermanentError, ProviderUnavailable, StoreUnavailable
from hermes.memory.provider import MemoryProvider
from hermes.plugins.memory.local import register
from hermes.plugins.memory.local.provider import LocalMemoryProvider
from tests.support import give_to_nobody, unprivileged

Open = Callable[..., LocalMemoryProvider]
Later = Callable[..., LocalMemoryProvider]


def texts(provider: LocalMemoryProvider) -> list[str]:
    """Everything stored, in order."""
    return [record["text"] for record in provider.export_records()]


def call(provider: LocalMemoryProvider, tool: str, **args: Any) -> Any:
    """What a tool answers."""
    return json.loads(provider.handle_tool_call(tool, args))


# -- storing ----------------------------------------------------------------------------------------------


def test_it_registers_itself() -> None:
    """The plugin offers one provider called ``local`` that stores before it returns."""
    given: list[MemoryProvider] = []

    class Context:
        register_memory_provider = given.append

    register(Context())
    assert [(p.name, p.delivery, p.is_available()) for p in given] == [("local", "stored", True)]


def test_a_turn_is_there_for_another_process_at_once(open_local: Open) -> None:
    """Session, author, time and both halves are stored when ``sync_turn`` returns."""
    open_local("s1").sync_turn("I like tea", "Noted.", turn_author="Ann", turn_time=1_700_000_000.0)
    assert list(open_local("s2").export_records()) == [
        {
            "id": 1 << 20,
            "text": "I like tea",
            "time": 1_700_000_000.0,
            "session_id": "s1",
            "role": "user",
            "author": "Ann",
        },
        {
            "id": (1 << 20) + 1,
            "text": "Noted.",
            "time": 1_700_000_000.0,
            "session_id": "s1",
            "role": "assistant",
        },
    ]


def test_the_same_key_is_stored_once(open_local: Open) -> None:
    """A turn that is delivered again is the same turn; without a key two equal lines are both kept."""
    provider = open_local()
    for _ in range(3):
        provider.sync_turn("keyed", "yes", idempotency_key="k1")
        provider.sync_turn("unkeyed", "")
    assert texts(provider) == ["keyed", "yes", "unkeyed", "unkeyed", "unkeyed"]
    assert provider.get_status_config({})["turns"] == 4


def test_a_key_belongs_to_its_person(open_local: Open) -> None:
    """The same key from two people is two turns."""
    for user in ("u1", "u2"):
        open_local("s", platform="telegram", user_id=user).sync_turn("mine", "", idempotency_key="k")
    assert len(texts(open_local())) == 2


def test_many_turns_in_one_go(open_local: Open) -> None:
    """``sync_turns`` keeps the order within a session and says how many were new."""
    provider = open_local()
    turns = [
        {
            "user_content": f"line {i}",
            "assistant_content": "",
            "session_id": f"s{i % 3}",
            "idempotency_key": str(i),
        }
        for i in range(30)
    ]
    assert provider.sync_turns(turns) == 30
    assert provider.sync_turns([*turns, {"user_content": "more", "session_id": "s0"}]) == 1
    assert texts(provider)[:11] == [*(f"line {i}" for i in range(0, 30, 3)), "more"]


def test_a_batch_with_a_turn_it_cannot_take_stores_nothing(open_local: Open) -> None:
    """All or none, and the error says that trying again cannot help."""
    provider = open_local()
    with pytest.raises(PermanentError):
        provider.sync_turns([{"user_content": "good"}, {"user_content": ["not", "text"]}])
    assert texts(provider) == []


@pytest.mark.parametrize(
    "said", ["a\x00b", "lone \ud800 surrogate", "🇩🇪" * 2000, "x " * 200_000, "字" * 50_000, "'\";--"]
)
def test_any_text_is_kept(open_local: Open, said: str) -> None:
    """No text is refused; only what no file can hold is replaced."""
    provider = open_local()
    provider.sync_turn(said, "ok")
    assert texts(provider)[0] == said.replace("\ud800", "\ufffd")


def test_empty_halves_are_left_out(open_local: Open) -> None:
    """A half without text is no message, and a turn without both is no turn."""
    provider = open_local()
    provider.sync_turn("", " \n")
    provider.sync_turn("only the user", "")
    provider.sync_turn("", "only the assistant")
    assert [(r["role"], r["text"]) for r in provider.export_records()] == [
        ("user", "only the user"),
        ("assistant", "only the assistant"),
    ]


@pytest.mark.parametrize("when", [None, float("nan"), float("inf"), "soon", True])
def test_a_time_that_is_none_is_now(open_local: Open, when: Any) -> None:
    """What is no time is replaced by the clock's."""
    provider = open_local(clock=lambda: 42.0)
    provider.sync_turn("x", "", turn_time=when)
    assert next(iter(provider.export_records()))["time"] == 42.0


@pytest.mark.parametrize("context", ["cron", "flush", "subagent"])
def test_what_no_person_said_is_not_stored(open_local: Open, context: str) -> None:
    """A scheduled run or a subagent reads, and leaves nothing behind."""
    provider = open_local(agent_context=context)
    provider.sync_turn("generated prompt", "answer")
    assert texts(provider) == []


# -- files ------------------------------------------------------------------------------------------------


def test_looking_creates_nothing(open_local: Open, home: Path) -> None:
    """Status, recall, search, export and forgetting in an empty profile make no file."""
    provider = open_local()
    provider.initialize_for_inspection("s", hermes_home=str(home), platform="cli")
    assert provider.get_status_config({})["turns"] == 0
    assert provider.prefetch("anything there?") == ""
    assert provider.search_records("anything") == []
    assert texts(provider) == []
    assert provider.forget_records() == 0
    assert call(provider, "local_list") == {"results": []}
    provider.shutdown()
    assert not home.exists()


def test_files_are_private_from_birth(open_local: Open, home: Path) -> None:
    """Folder 0700; database, log and shared memory 0600, whatever the umask."""
    old = os.umask(0)
    try:
        open_local().sync_turn("x", "")
    finally:
        os.umask(old)
    assert stat.S_IMODE((home / "local").stat().st_mode) == 0o700
    files = list((home / "local").iterdir())
    assert {p.name for p in files} >= {"memory.db", "memory.db-wal", "memory.db-shm"}
    assert {stat.S_IMODE(p.stat().st_mode) for p in files} == {0o600}


def test_a_home_that_cannot_be_written(reachable: Path) -> None:
    """The turn is refused with the file's name, so that the host keeps it; nothing is made."""
    shut, other = reachable / "shut", LocalMemoryProvider()
    other.initialize("s", hermes_home=str(reachable / "other"), platform="cli")
    other.sync_turn("x", "")  # imports what the child, which cannot reach root's Python, will need
    other.shutdown()
    shut.mkdir()
    give_to_nobody(reachable)

    def attempt() -> None:
        shut.chmod(0o500)
        provider = LocalMemoryProvider()
        provider.initialize("s", hermes_home=str(shut), platform="cli")
        with pytest.raises(Exception, match="shut") as caught:
            provider.sync_turn("x", "")
        assert caught.value.exit_code == 4  # type: ignore[attr-defined]
        assert list(shut.iterdir()) == []

    unprivileged(attempt)


def test_a_file_that_is_no_store(open_local: Open, home: Path) -> None:
    """A damaged or foreign file is named, and left as it is."""
    (home / "local").mkdir(parents=True)
    (home / "local" / "memory.db").write_bytes(b"not a database at all" * 100)
    provider = open_local()
    with pytest.raises(StoreUnavailable, match=r"memory\.db"):
        provider.sync_turn("x", "")
    with pytest.raises(StoreUnavailable, match=r"memory\.db"):
        provider.prefetch("what about x")
    assert (home / "local" / "memory.db").read_bytes().startswith(b"not a database")


def test_a_file_removed_behind_its_back(open_local: Open, home: Path) -> None:
    """Turns go into the file that is there, not into one that is gone."""
    provider = open_local()
    provider.sync_turn("old", "")
    for path in (home / "local").iterdir():
        path.unlink()
    provider.sync_turn("new", "")
    assert texts(open_local("s2")) == ["new"]


# -- recall -----------------------------------------------------------------------------------------------


def test_recall_is_dated_and_names_the_speaker(open_local: Open) -> None:
    """One line an item: day, who, what; the assistant's own words are marked as such."""
    open_local("a").sync_turn(
        "My locker code is 4471",
        "I will remember the locker code.",
        turn_author="Ann",
        turn_time=1_700_000_000.0,
    )
    provider = open_local("b")
    lines = provider.prefetch("What was my locker code?").split("\n")
    assert lines[1:] == [
        "- 2023-11-14 Ann: My locker code is 4471",
        "- 2023-11-14 assistant: I will remember the locker code.",
    ]
    status = provider.recall_status()
    assert status is not None
    assert (status.provider_label, status.count) == ("local", 2)


def test_nothing_is_offered_where_nothing_fits(later: Later) -> None:
    """No block, no count, for small talk and for what was never spoken of."""
    provider = later("My locker code is 4471")
    for asked in ("hi", "ok", "thanks!", "/help", "", "Who won the chess tournament in Reykjavik?"):
        assert provider.prefetch(asked) == ""
        assert provider.recall_status() is None


def test_the_session_itself_is_not_recalled(open_local: Open) -> None:
    """What the model has before its eyes is not given twice, until it is compressed away."""
    provider = open_local("s1")
    provider.sync_turn("My locker code is 4471", "")
    assert provider.prefetch("locker code?") == ""
    assert call(provider, "local_search", query="locker code")["results"] != []
    provider.on_pre_compress([])
    assert "4471" in provider.prefetch("locker code?")


def test_a_new_session_recalls_the_old_one_and_a_branch_does_not(open_local: Open) -> None:
    """A branch holds its parent's messages, a fresh start does not."""
    provider = open_local("s1")
    provider.sync_turn("My locker code is 4471", "")
    provider.on_session_switch("s2", parent_session_id="s1", reason="branch")
    assert provider.prefetch("locker code?") == ""
    provider.on_session_switch("s3", reset=True, reason="new_session")
    assert "4471" in provider.prefetch("locker code?")
    provider.sync_turn("Said in the third", "")
    assert [r["session_id"] for r in provider.search_records("said third") or []] == ["s3"]


def test_recall_is_bounded(later: Later) -> None:
    """Long texts are cut around the fitting part, and there are only so many."""
    provider = later(
        *(("filler words here " * 300) + f"the zebra file number {i} " + ("more " * 300) for i in range(20))
    )
    block = provider.prefetch("zebra file number 7")
    assert "zebra file number" in block
    assert len(block) < 3_200


def test_the_prompt_block_is_short_and_static(open_local: Open) -> None:
    """The system prompt never changes with what is stored, so that it can be cached."""
    provider = open_local()
    before = provider.system_prompt_block()
    provider.sync_turn("x", "")
    assert provider.system_prompt_block() == before
    assert 0 < len(before) < 300


# -- tools ------------------------------------------------------------------------------------------------


def test_tools_have_complete_schemas(open_local: Open) -> None:
    """Each tool says what it does, and each argument what it means; the caller gets its own copy."""
    provider = open_local()
    schemas = provider.get_tool_schemas()
    assert [s["name"] for s in schemas] == [
        "local_search",
        "local_list",
        "local_remember",
        "local_update",
        "local_forget",
    ]
    for schema in schemas:
        assert len(schema["description"]) > 40
        for prop in schema["parameters"]["properties"].values():
            assert prop["description"]
    schemas[0]["name"] = "changed"
    assert provider.get_tool_schemas()[0]["name"] == "local_search"


def test_search_list_and_forget(later: Later) -> None:
    """What search finds, forget deletes by its id, and then neither search nor list knows it."""
    provider = later("the vault is under the stairs", "the cat is called Minka")
    (found,) = [
        r for r in call(provider, "local_search", query="vault stairs")["results"] if "vault" in r["text"]
    ]
    assert found["date"] == "2023-11-14"
    assert found["session"] == "earlier"
    assert len(call(provider, "local_list", session="earlier")["results"]) == 2
    assert call(provider, "local_forget", ids=[found["id"]]) == {"forgotten": 1, "asked": 1}
    assert [r["text"] for r in call(provider, "local_list")["results"]] == ["the cat is called Minka"]
    assert "vault" not in json.dumps(call(provider, "local_search", query="vault stairs"))
    assert call(provider, "local_forget", ids=[found["id"]]) == {"forgotten": 0, "asked": 1}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("local_search", {}),
        ("local_search", {"query": None}),
        ("local_search", {"query": 7}),
        ("local_search", {"query": " "}),
        ("local_search", {"query": "x", "limit": "many"}),
        ("local_search", {"query": "x", "limit": True}),
        ("local_list", {"session": ["a"]}),
        ("local_list", {"limit": float("inf")}),
        ("local_forget", {}),
        ("local_forget", {"ids": []}),
        ("local_forget", {"ids": "all"}),
        ("local_forget", {"ids": [None]}),
        ("local_forget", {"ids": [-1]}),
        ("local_forget", {"ids": [1 << 70]}),
        ("local_forget", {"ids": list(range(101))}),
    ],
)
def test_wrong_arguments_are_answered(later: Later, tool: str, args: dict[str, Any]) -> None:
    """A wrong argument gets an error that says what is expected, and deletes nothing."""
    provider = later("something")
    assert set(call(provider, tool, **args)) == {"error", "next_step"}
    assert texts(provider) == ["something"]


def test_limits_are_kept_within_bounds(later: Later) -> None:
    """Too much or too little asked for is brought into bounds."""
    provider = later(*(f"the zebra number {i}" for i in range(70)))
    assert len(call(provider, "local_search", query="zebra", limit=10_000)["results"]) == 50
    assert len(call(provider, "local_list", limit=-3)["results"]) == 1


# -- notes of the built-in memory -------------------------------------------------------------------------


def test_notes_are_mirrored(open_local: Open) -> None:
    """An added entry is recalled once, a replaced one as it is now, a removed one not at all."""
    provider = open_local()
    provider.on_memory_write("add", "memory", "Deploys go through zork99")
    provider.on_memory_write("add", "memory", "Deploys go through zork99")
    assert texts(provider) == ["Deploys go through zork99"]
    assert "noted: Deploys go through zork99" in provider.prefetch("how do deploys go?")
    provider.on_memory_write(
        "replace", "memory", "Deploys go through quux12", {"previous_content": "Deploys go through zork99"}
    )
    assert texts(provider) == ["Deploys go through quux12"]
    provider.on_memory_write("remove", "user", "Deploys go through quux12")
    assert len(texts(provider)) == 1
    provider.on_memory_write("remove", "memory", "Deploys go through quux12")
    assert provider.prefetch("how do deploys go?") == ""


def test_a_replacement_by_a_part_of_the_old_text(open_local: Open) -> None:
    """Where only the addressing text is known, it must fit one entry; an unknown entry is added."""
    provider = open_local()
    for entry in ("tea: green", "coffee: black"):
        provider.on_memory_write("add", "user", entry)
    provider.on_memory_write("replace", "user", "tea: white", {"old_text": "tea"})
    provider.on_memory_write("replace", "user", "milk: oat", {"old_text": "e"})
    assert sorted(texts(provider)) == ["coffee: black", "milk: oat", "tea: white"]


def test_an_unknown_change_is_refused(open_local: Open) -> None:
    """What is neither add, replace nor remove can never be taken."""
    with pytest.raises(PermanentError):
        open_local().on_memory_write("merge", "memory", "x")


# -- the rest ---------------------------------------------------------------------------------------------


def test_status_says_what_is_stored(open_local: Open) -> None:
    """Turns, sessions, notes, size, place and last write."""
    provider = open_local(clock=lambda: 99.0)
    provider.sync_turn("one", "two", turn_time=5.0)
    provider.on_memory_write("add", "memory", "note")
    shown = provider.get_status_config({"top_k": 5, "secret_thing": ["x"]})
    assert {k: shown[k] for k in ("turns", "messages", "sessions", "notes", "newest", "top_k", "tier")} == {
        "turns": 1,
        "messages": 3,
        "sessions": 1,
        "notes": 1,
        "newest": 99.0,
        "top_k": 5,
        "tier": "lexical",
    }
    assert shown["bytes"] > 0
    assert "secret_thing" not in shown


def test_before_initialize_it_says_so() -> None:
    """A provider that was never started names the step that is missing."""
    with pytest.raises(ProviderUnavailable, match="not initialized"):
        LocalMemoryProvider().sync_turn("x", "")
    with pytest.raises(ProviderUnavailable, match="hermes_home"):
        LocalMemoryProvider().initialize("s", platform="cli")


def test_after_shutdown_it_can_start_again(open_local: Open, home: Path) -> None:
    """Shutdown twice is fine, and initialize opens anew."""
    provider = open_local()
    provider.sync_turn("x", "")
    provider.shutdown()
    provider.shutdown()
    provider.initialize("s2", hermes_home=str(home), platform="cli")
    assert texts(provider) == ["x"]
