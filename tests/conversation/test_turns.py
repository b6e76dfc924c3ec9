"""One turn: its order, what the model is given, tools, faults, and a stop in the middle."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hermes.conversation.conversation import Screen
from hermes.conversation.turn import MOST_ROUNDS
from hermes.errors import ModelUnavailable
from hermes.plugin_host.context import Registered
from hermes.plugin_host.hooks import Here
from hermes.testing import RecordingProvider
from tests.conversation.conftest import Talk
from tests.conversation.server import ScriptedModel, calls, says

Talking = Callable[..., Talk]


def test_the_answer_is_shown_as_it_arrives_and_the_turn_is_kept(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """A turn streams its answer, is delivered once, and stands in the transcript."""
    scripted.answer = lambda request: says("Hello Ada, how are you?", pieces=4)
    talk = talking()
    told = talk.say("I am Ada.")
    assert (told.text, told.state, told.durable) == ("Hello Ada, how are you?", "done", True)
    assert len(talk.shown) == 4
    (turn,) = talk.provider.wait_for("sync_turn")
    assert (turn["user"], turn["assistant"]) == ("I am Ada.", "Hello Ada, how are you?")
    said = talk.conversation.sessions.said(talk.conversation.session_id)
    assert [message["content"] for message in said] == ["I am Ada.", "Hello Ada, how are you?"]


def test_the_hooks_of_a_turn_come_in_their_order(scripted: ScriptedModel, talking: Talking) -> None:
    """on_turn_start, prefetch, the model, sync_turn, queue_prefetch: in this order."""
    talk = talking()
    at_model: list[list[str]] = []

    def answer(request: Any) -> Any:
        at_model.append([name for name, _ in talk.provider.calls])
        return says("yes")

    scripted.answer = answer
    talk.say("Is it so?")
    talk.provider.wait_for("sync_turn")
    talk.provider.wait_for("queue_prefetch")
    assert at_model == [["initialize", "on_turn_start", "prefetch"]]


def test_recall_goes_to_the_model_and_nowhere_else(scripted: ScriptedModel, talking: Talking) -> None:
    """Recalled text is fenced into the copy of the person's message that the model gets; no transcript holds it."""
    talk = talking(RecordingProvider(recall="Ada's dog is called Bo."))
    talk.say("What is my dog called?")
    talk.say("And again?")
    first, second = (request["messages"] for request in scripted.requests)
    assert "<memory-context>" in first[-1]["content"]
    assert "Bo" in first[-1]["content"]
    assert second[1]["content"] == "What is my dog called?"
    assert sum("<memory-context>" in str(message) for message in second) == 1
    turns = talk.provider.wait_for("sync_turn", 2)
    assert "Bo" not in json.dumps(turns)
    assert "memory-context" not in json.dumps(talk.conversation.sessions.said(talk.conversation.session_id))


def test_the_prompt_of_a_session_is_frozen(scripted: ScriptedModel, talking: Talking) -> None:
    """An entry stored in the middle of a session changes the next session's prompt, not this one's."""
    entry = {"action": "add", "target": "memory", "content": "Ada prefers tea"}
    scripted.answer = lambda request: (
        says("ok") if request["messages"][-1]["role"] == "tool" else calls("memory", entry)
    )
    talk = talking()
    talk.say("Remember that I prefer tea.")
    scripted.answer = lambda request: says("ok")
    talk.say("Thanks for that.")
    talk.conversation.new()
    talk.say("Hello there")
    prompts = [request["messages"][0]["content"] for request in scripted.requests]
    assert len(set(prompts[:3])) == 1
    assert "prefers tea" not in prompts[0]
    assert "prefers tea" in prompts[-1]


def test_tools_run_in_rounds_and_belong_to_the_turn(scripted: ScriptedModel, talking: Talking) -> None:
    """A tool call is run, its result goes back to the model, and the provider gets the whole exchange."""
    scripted.answer = lambda request: (
        says("It said hi.")
        if request["messages"][-1]["role"] == "tool"
        else calls("recording_echo", {"text": "hi"}, text="Let me see.")
    )
    talk = talking()
    told = talk.say("Echo hi")
    assert told.text == "Let me see.\n\nIt said hi."
    assert json.loads(scripted.requests[1]["messages"][-1]["content"]) == {"echo": {"text": "hi"}}
    (turn,) = talk.provider.wait_for("sync_turn")
    assert [message["role"] for message in turn["messages"]] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("arguments", ["{not json", "[1]", '"text"'])
def test_broken_arguments_go_back_to_the_model(
    scripted: ScriptedModel, talking: Talking, arguments: str
) -> None:
    """Arguments that are no object are an error for the model to mend, not the end of the turn."""
    scripted.answer = lambda request: (
        says("sorry") if request["messages"][-1]["role"] == "tool" else calls("recording_echo", arguments)
    )
    talk = talking()
    assert talk.say("go").text == "sorry"
    assert "error" in json.loads(scripted.requests[1]["messages"][-1]["content"])


def test_a_model_that_never_stops_calling_tools_is_stopped(scripted: ScriptedModel, talking: Talking) -> None:
    """The rounds of a turn are bounded, and what the model is told last is to answer."""
    scripted.answer = lambda request: calls("recording_echo", {"text": "again"})
    talk = talking()
    talk.say("loop")
    assert len(scripted.requests) == MOST_ROUNDS
    assert "no more tool calls" in scripted.requests[-1]["messages"][-1]["content"]
    assert len(talk.provider.named("handle_tool_call")) < MOST_ROUNDS


def test_an_echoed_fence_is_scrubbed_from_the_stream(scripted: ScriptedModel, talking: Talking) -> None:
    """A model that repeats its background shows nothing of it, however the stream is cut."""
    scripted.answer = lambda request: says(
        "Well. <memory-context>secret stuff</memory-context> Done.", pieces=20
    )
    talk = talking()
    told = talk.say("hi there")
    assert "secret" not in told.text + "".join(talk.shown)
    assert "Done." in told.text


def test_stopping_an_answer_keeps_the_conversation_and_syncs_nothing(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """Ctrl-C in the middle of an answer: interrupted, shown in the transcript, never given to the memory."""
    scripted.answer = lambda request: [{"content": "Once upon "}, {"content": "a time"}, "hang"]
    talk = talking()
    talk.conversation.screen = Screen(_interrupting(talk.shown, after=2), talk.notes.append)
    told = talk.say("Tell me a story")
    assert (told.state, told.text) == ("interrupted", "Once upon a time")
    scripted.proceed.set()
    scripted.answer = lambda request: says("sure")
    talk.conversation.screen = Screen(talk.shown.append, talk.notes.append)
    talk.say("Something else")
    (turn,) = talk.provider.wait_for("sync_turn")
    assert turn["user"] == "Something else"
    assert [m["role"] for m in scripted.requests[-1]["messages"]] == ["system", "user", "assistant", "user"]
    rows = talk.conversation.sessions.transcript(talk.conversation.session_id)
    assert [row.state for row in rows] == ["interrupted", "interrupted", "done", "done"]


def _interrupting(shown: list[str], *, after: int) -> Callable[[str], None]:
    def show(text: str) -> None:
        shown.append(text)
        if len(shown) == after:
            raise KeyboardInterrupt

    return show


@pytest.mark.parametrize(
    ("answer", "status", "attempts"),
    [
        pytest.param((500, {"error": {"message": "boom"}}), 500, 4, id="server error"),
        pytest.param((429, {"error": {"message": "slow down"}}, {"Retry-After": "7"}), 429, 4, id="busy"),
        pytest.param((429, {"error": "busy"}, {"Retry-After": "3600"}), 429, 1, id="busy for an hour"),
        pytest.param((401, {"error": {"message": "bad key"}}), 401, 1, id="wrong key"),
        pytest.param((404, "<html>not here</html>"), 404, 1, id="wrong address"),
        pytest.param((400, {"error": {"message": "no such option"}}), 400, 1, id="bad request"),
        pytest.param([{"error": {"message": "overloaded"}}], None, 4, id="error in the stream"),
        pytest.param(["data: {broken"], None, 4, id="no JSON"),
        pytest.param([{"content": "half"}, "drop"], None, 1, id="connection lost in the middle"),
        pytest.param([{"content": "half"}, "cut"], None, 1, id="ends without a finish"),
        pytest.param(["drop"], None, 4, id="connection lost at once"),
    ],
)
def test_a_model_that_fails_is_one_clear_error_and_the_message_is_kept(
    scripted: ScriptedModel, talking: Talking, answer: Any, status: int | None, attempts: int
) -> None:
    """What passes is tried again with growing pauses, what does not is told at once; what was said is kept."""
    scripted.answer = lambda request: answer
    talk = talking()
    with pytest.raises(ModelUnavailable) as caught:
        talk.say("Do not lose this")
    assert caught.value.status == status
    assert len(scripted.requests) == attempts
    assert len(talk.waited) == attempts - 1
    (row, *_) = talk.conversation.sessions.transcript(talk.conversation.session_id, every=True)
    assert (row.message["content"], row.state) == ("Do not lose this", "failed")
    assert talk.provider.named("sync_turn") == []


def test_the_pause_that_a_server_asks_for_is_kept(scripted: ScriptedModel, talking: Talking) -> None:
    """Retry-After is waited for, and the person is told of it."""
    answers = iter([(429, {"error": "busy"}, {"Retry-After": "7"}), says("there")])
    scripted.answer = lambda request: next(answers)
    talk = talking()
    assert talk.say("hello you").text == "there"
    assert talk.waited == [7.0]
    assert any("trying again in 7 s" in note for note in talk.notes)


def test_a_server_that_does_not_know_the_count_of_tokens_is_asked_without(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """A 400 that names stream_options is answered by leaving them out, from then on."""
    scripted.answer = lambda request: (
        (400, {"error": {"message": "unknown field stream_options"}})
        if "stream_options" in request
        else says("ok")
    )
    talk = talking()
    assert talk.say("one thing").text == "ok"
    assert talk.say("another thing").text == "ok"
    assert ["stream_options" in request for request in scripted.requests] == [True, False, False]


def test_a_failed_turn_can_be_said_again(scripted: ScriptedModel, talking: Talking) -> None:
    """After a failure the conversation goes on as if the message had not been said."""
    scripted.answer = lambda request: (401, {"error": {"message": "bad key"}})
    talk = talking()
    with pytest.raises(ModelUnavailable):
        talk.say("first try")
    scripted.answer = lambda request: says("now it works")
    talk.say("first try")
    assert [m["content"] for m in scripted.requests[-1]["messages"][1:]] == ["first try"]
    (turn,) = talk.provider.wait_for("sync_turn")
    assert turn["assistant"] == "now it works"


def test_a_transcript_that_cannot_be_written_stops_nothing(
    scripted: ScriptedModel, talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where sessions.db refuses, the turn goes on, is remembered, and the person is told."""
    talk = talking()
    talk.paths.home.mkdir(exist_ok=True)
    talk.paths.sessions.write_bytes(b"this is no database at all, but long enough to be taken for one" * 20)
    told = talk.say("carry on")
    assert told.text == "fine"
    assert any("transcript is not kept" in note for note in talk.notes)
    talk.provider.wait_for("sync_turn")


def test_the_nudge_offers_the_memory_tool_alone_and_in_the_background(
    scripted: ScriptedModel, talking: Talking
) -> None:
    """Every so many turns the model may store something; the turn does not wait for it."""
    entry = {"action": "add", "target": "user", "content": "Lives in Graz"}
    stored = threading.Event()

    def answer(request: Any) -> Any:
        last = request["messages"][-1]
        if last["role"] == "user" and "worth remembering" in last["content"]:
            return calls("memory", entry)
        return says("fine")

    scripted.answer = answer
    talk = talking(nudge_every=2)

    def note(line: str) -> None:
        talk.notes.append(line)
        if "stored" in line:
            stored.set()

    talk.conversation.screen = Screen(talk.shown.append, note, note)
    talk.say("I live in Graz")
    talk.say("and like it there")
    assert stored.wait(10)
    assert "memory: 1 entry stored" in talk.notes
    asked = [r for r in scripted.requests if "worth remembering" in str(r["messages"])]
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["memory"]
    assert "Lives in Graz" in (talk.paths.memories / "USER.md").read_text("utf-8")
    assert len(talk.provider.wait_for("sync_turn", 2)) == 2


def test_hooks_of_plugins_are_fired_around_the_model(scripted: ScriptedModel, talking: Talking) -> None:
    """pre_llm_call adds background for the model, post_llm_call hears the answer; neither sees a secret."""
    registered = Registered()
    heard: list[dict[str, Any]] = []
    registered.hooks["pre_llm_call"] = [lambda **facts: {"context": "The plugin knows: Bo is a dog."}]
    registered.hooks["post_llm_call"] = [lambda **facts: heard.append(facts)]
    talk = talking()
    talk.conversation.memory.hooks.add("talker", Here(registered))
    talk.say("my key is sk-proj-abcdefghijklmnopqrstuvwx, who is Bo?")
    assert "Bo is a dog" in scripted.requests[0]["messages"][-1]["content"]
    assert "Bo is a dog" not in str(talk.conversation.sessions.said(talk.conversation.session_id))
    assert talk.conversation.memory.hooks.drain(10)
    (facts,) = heard
    assert facts["assistant_response"] == "fine"
    assert "sk-proj" not in str(facts)
