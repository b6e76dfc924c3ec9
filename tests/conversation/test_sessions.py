"""Boundaries: new, resume, branch, undo, compress, idle, exit and a crash, each told once and in order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from hermes.errors import NotFound, UsageError
from hermes.testing import RecordingProvider
from tests.conversation.conftest import Talk
from tests.conversation.server import ScriptedModel, says

Talking = Callable[..., Talk]


def _boundaries(provider: RecordingProvider) -> list[tuple[Any, ...]]:
    """The boundaries that *provider* was told of, in order."""
    told: list[tuple[Any, ...]] = []
    for name, given in list(provider.calls):
        if name == "on_session_end":
            told.append(("end", sum(message["role"] == "user" for message in given["messages"])))
        elif name == "on_session_switch":
            told.append(("switch", given.get("reason"), given["rewound"]))
    return told


def test_a_new_session_ends_the_old_one_first(talking: Talking) -> None:
    """/new: the end with the whole transcript, then the switch."""
    talk = talking()
    for text in ("first of all", "second thing", "third thing"):
        talk.say(text)
    old = talk.conversation.session_id
    new = talk.conversation.new()
    talk.say("in the new one")
    talk.provider.wait_for("sync_turn", 4)
    assert _boundaries(talk.provider) == [("end", 3), ("switch", "new_session", False)]
    turns = talk.provider.named("sync_turn")
    assert [turn["session_id"] for turn in turns] == [old] * 3 + [new]


def test_a_session_is_resumed_in_another_process(scripted: ScriptedModel, talking: Talking) -> None:
    """Resuming gives the model what was said, and the new turns add to the old ones."""
    first = talking()
    first.say("My bike is red.")
    session = first.conversation.session_id
    first.leave()
    second = talking(session=session)
    second.say("What colour is my bike?")
    assert [m["content"] for m in scripted.requests[-1]["messages"][1:]] == [
        "My bike is red.",
        "fine",
        "What colour is my bike?",
    ]
    second.conversation.close()
    second.provider.wait_for("on_session_end")
    assert _boundaries(second.provider)[-1] == ("end", 2)


def test_resume_ends_the_session_that_is_left(talking: Talking) -> None:
    """/resume: the end of the one, the switch to the other, once each; an unknown id changes nothing."""
    talk = talking()
    talk.say("in the first")
    first = talk.conversation.session_id
    talk.conversation.new()
    talk.say("in the second")
    with pytest.raises(NotFound):
        talk.conversation.resume("nosuchsession")
    assert talk.conversation.resume(first[:-2]) == first
    talk.provider.wait_for("on_session_switch", 2)
    assert _boundaries(talk.provider) == [
        ("end", 1),
        ("switch", "new_session", False),
        ("end", 1),
        ("switch", "resume", False),
    ]


def test_a_branch_goes_on_with_everything_and_leaves_the_old_one_alone(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """/branch: what was said so far is in both; what follows is in the new one only."""
    talk = talking()
    talk.say("common ground")
    old = talk.conversation.session_id
    new = talk.conversation.branch()
    talk.say("only here")
    sessions = talk.conversation.sessions
    assert len(sessions.said(old)) == 2
    assert len(sessions.said(new)) == 4
    assert sessions.get(new).parent == old
    assert len(scripted.requests[-1]["messages"]) == 4
    talk.provider.wait_for("sync_turn", 2)
    assert _boundaries(talk.provider) == [("switch", "branch", False)]


def test_nothing_can_be_branched_or_taken_back_before_something_is_said(talking: Talking) -> None:
    """/branch and /undo in an empty session are an error that says so."""
    talk = talking()
    for action in (talk.conversation.branch, talk.conversation.undo):
        with pytest.raises(UsageError, match=r"nothing|no turn"):
            action()
    assert _boundaries(talk.provider) == []


def test_undo_takes_the_last_turn_back_everywhere(scripted: ScriptedModel, talking: Talking) -> None:
    """/undo: the providers are told once with rewound, the model no longer sees the turn, nor does its end."""
    talk = talking()
    talk.say("stays for good")
    talk.say("was a mistake")
    gone = talk.conversation.undo()
    assert gone[0]["content"] == "was a mistake"
    talk.say("and goes on")
    assert "was a mistake" not in str(scripted.requests[-1]["messages"])
    talk.conversation.close()
    (end,) = talk.provider.wait_for("on_session_end")
    assert "was a mistake" not in str(end["messages"])
    assert _boundaries(talk.provider) == [("switch", "undo", True), ("end", 2)]


def test_exit_ends_the_session_once_and_only_if_something_was_said(talking: Talking) -> None:
    """Closing tells the end once; a conversation in which nothing was said has no end to tell of."""
    silent = talking()
    silent.conversation.close()
    silent.conversation.close()
    talk = talking()
    talk.say("something at last")
    talk.conversation.close("terminated")
    talk.conversation.close()
    talk.provider.wait_for("on_session_end")
    assert _boundaries(talk.provider) == [("end", 1)]
    assert _boundaries(silent.provider) == []
    (session, *_) = talk.conversation.sessions.listing()
    assert session.end_reason == "terminated"


def test_a_session_left_alone_is_ended_before_the_next_words(talking: Talking) -> None:
    """Idle for longer than it may be: end and switch, then the words in a new session."""
    now = [1_000_000.0]
    talk = talking(idle=3600.0, clock=lambda: now[0])
    talk.say("before the break")
    first = talk.conversation.session_id
    now[0] += 3500
    talk.say("still the same")
    assert talk.conversation.session_id == first
    now[0] += 3700
    talk.say("after the break")
    assert talk.conversation.session_id != first
    talk.provider.wait_for("sync_turn", 3)
    assert _boundaries(talk.provider) == [("end", 2), ("switch", "idle", False)]


def test_a_turn_that_was_finished_and_not_handed_over_is_handed_over_by_the_next_start(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the transcript and the memory loses nothing and doubles nothing."""
    talk = talking()
    talk.say("handed over as ever")
    monkeypatch.setattr(
        talk.conversation, "_remember", lambda *_: (_ for _ in ()).throw(SystemError("killed here"))
    )
    with pytest.raises(SystemError):
        talk.say("finished, then killed")
    talk.conversation.memory.shutdown_all()
    later = talking()
    later.provider.wait_for("sync_turn")
    everything = [*talk.provider.named("sync_turn"), *later.provider.named("sync_turn")]
    assert sorted(turn["user"] for turn in everything) == ["finished, then killed", "handed over as ever"]
    later.conversation.memory.shutdown_all()
    again = talking()
    assert again.provider.named("sync_turn") == []


def test_compression_is_told_once_and_the_conversation_goes_on(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """/compress: pre-compress, one switch with both sizes, and a valid conversation that is shorter."""

    def answer(request: Any) -> Any:
        return says(
            "They spoke of ships."
            if "summary" in request["messages"][0]["content"]
            else "a long answer " * 50
        )

    scripted.answer = answer
    talk = talking()
    for number in range(12):
        talk.say(f"question {number} about ships")
    outcome = talk.conversation.compress("ships")
    assert outcome.done
    assert outcome.after < outcome.before
    talk.say("and now?")
    sent = scripted.requests[-1]["messages"]
    assert "They spoke of ships." in str(sent)
    assert "question 5" not in str(sent)
    roles = [message["role"] for message in sent]
    assert all(a != b for a, b in itertools.pairwise(roles))
    (switch,) = talk.provider.wait_for("on_session_switch")
    assert (switch["reason"], switch["tokens_before"], switch["tokens_after"]) == (
        "compression",
        outcome.before,
        outcome.after,
    )
    assert len(talk.provider.named("on_pre_compress")) == 1
    session = talk.conversation.session_id
    talk.leave()
    resumed = talking(session=session)
    resumed.say("still there?")
    assert "They spoke of ships." in str(scripted.requests[-1]["messages"])
    assert "question 5" not in str(scripted.requests[-1]["messages"])
    assert "question 5" in str(resumed.conversation.sessions.said(session))
    with pytest.raises(UsageError, match="summarised"):
        [resumed.conversation.undo() for _ in range(4)]


def test_what_is_too_long_for_the_model_is_compressed_and_asked_again(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """A model that refuses the length is asked once more with a shorter conversation."""
    refused = []

    def answer(request: Any) -> Any:
        if "summary" in request["messages"][0]["content"]:
            return says("short")
        if len(request["messages"]) > 20:
            refused.append(request)
            return (400, {"error": {"message": "too long", "code": "context_length_exceeded"}})
        return says("an answer of some length " * 20)

    scripted.answer = answer
    talk = talking()
    for number in range(12):
        assert talk.say(f"question {number}").state == "done"
    assert len(refused) == 1
    assert any("shortened" in note for note in talk.notes)


def test_a_full_context_is_compressed_before_the_next_call(scripted: ScriptedModel, talking: Talking) -> None:
    """When the model has counted more than the threshold, the next turn begins with a shorter conversation."""

    def answer(request: Any) -> Any:
        if "summary" in request["messages"][0]["content"]:
            return says("short")
        return says("answer " * 40, prompt=900 if len(request["messages"]) > 18 else 10)

    scripted.answer = answer
    talk = talking(context_length=1_000_000)
    talk.conversation._compaction.engine.threshold_tokens = 800
    for number in range(11):
        talk.say(f"question {number} " + "word " * 3)
    assert any("shortened" in note for note in talk.notes)
    assert len(talk.provider.wait_for("on_session_switch")) == 1


def test_a_checkpoint_that_fails_stops_the_compression(scripted: ScriptedModel, talking: Talking) -> None:
    """A provider with checkpoint version 2 that cannot keep what goes away: nothing is summarised."""

    class Strict(RecordingProvider):
        pre_compress_checkpoint_api_version = 2

        def on_pre_compress(self, messages: Any, *, require_checkpoint: bool = False) -> str:
            raise RuntimeError("the disk is full")

    talk = talking(Strict())
    for number in range(12):
        talk.say(f"question {number}")
    asked = len(scripted.requests)
    outcome = talk.conversation.compress()
    assert not outcome.done
    assert "the disk is full" in outcome.reason
    assert len(scripted.requests) == asked
    assert _boundaries(talk.provider) == []


def test_what_a_provider_gives_before_compression_reaches_the_summary(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """The text of on_pre_compress is in what is summarised, masked and bounded."""

    class Keeping(RecordingProvider):
        def on_pre_compress(self, messages: Any, *, require_checkpoint: bool = False) -> str:
            return "KEEP-42 and the key sk-proj-abcdefghijklmnopqrstuvwx " + "x" * 20_000

    talk = talking(Keeping())
    for number in range(12):
        talk.say(f"question {number}")
    talk.conversation.compress()
    summary = next(r for r in scripted.requests if "summary" in r["messages"][0]["content"])
    text = summary["messages"][1]["content"]
    assert "KEEP-42" in text
    assert "sk-proj-" not in text
    assert len(text) < 16_000
