"""``hermes chat``: one answer through pipes, and a conversation in a terminal, against a scripted model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.server import ScriptedModel, calls, says
from tests.support import hermes
from tests.terminal import Terminal


@pytest.fixture
def scripted() -> Iterator[ScriptedModel]:
    """A model that says ``fine`` until a test gives it something else to answer."""
    server = ScriptedModel(lambda request: says("fine"))
    yield server
    server.close()


@pytest.fixture
def chat(home: Path, scripted: ScriptedModel) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``hermes chat ARGS`` with the scripted model."""

    def run(*args: str, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        done = hermes("chat", *args, home=home, env=model(scripted), **options)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


def model(scripted: ScriptedModel) -> dict[str, str]:
    """The environment that sets the scripted model."""
    return {"HERMES__MODEL__BASE_URL": scripted.base_url, "HERMES__MODEL__NAME": "scripted"}


Chat = Callable[..., subprocess.CompletedProcess[str]]


def test_one_answer(scripted: ScriptedModel, chat: Chat) -> None:
    """A message on the command line is answered on standard output, and nothing else stands there."""
    scripted.answer = lambda request: says("Hello there.")
    assert chat("say hello to me").stdout == "Hello there.\n"
    assert chat("-m", "say hello to me").stdout == "Hello there.\n"
    assert chat(stdin="say hello\nto me\n").stdout == "Hello there.\n"
    assert scripted.requests[-1]["messages"][-1]["content"].startswith("say hello\nto me\n")


def test_json_is_for_programs(chat: Chat) -> None:
    """--json prints one object with the session, the answer and what it cost."""
    told = json.loads(chat("hello you", "--json").stdout)
    assert (told["answer"], told["state"], told["turn"], told["durable"]) == ("fine", "done", 1, True)
    assert told["usage"]["prompt_tokens"] == 10


def test_what_was_said_in_one_process_is_remembered_in_the_next(scripted: ScriptedModel, chat: Chat) -> None:
    """A fact of one session reaches the model in another, as background; --continue goes on in the same."""
    chat("My boat is called Marlin and lies in Piran.")
    said = chat("What is my boat called?")
    assert "Marlin" in scripted.requests[-1]["messages"][-1]["content"]
    assert len(scripted.requests[-1]["messages"]) == 2
    assert "local" in said.stderr
    chat("--continue", "And where does it lie?")
    assert [m["role"] for m in scripted.requests[-1]["messages"]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        ((" ",), 2, "nothing to say"),
        (("hello", "-m", "hello"), 2, "say it once"),
        (("--session", "x", "--continue", "hello"), 2, "cannot both"),
        (("--continue", "hello"), 3, "no session to go on in"),
        (("--session", "nosuch", "hello"), 3, "no session 'nosuch'"),
    ],
)
def test_misuse_is_one_line(chat: Chat, args: tuple[str, ...], code: int, expected: str) -> None:
    """Each mistake has its exit code and says what to do."""
    error = chat(*args, code=code).stderr
    assert expected in error
    assert error.count("\n") == 1


def test_without_a_model_the_command_says_how_to_set_one(home: Path) -> None:
    """No model in the settings: exit 4, and the commands that set one."""
    done = hermes("chat", "hello", home=home)
    assert done.returncode == 4
    assert "hermes config set model.base_url" in done.stderr


def test_a_refused_key_is_one_line_and_the_message_stays(
    scripted: ScriptedModel, home: Path, chat: Chat
) -> None:
    """An error of the server: exit 4, its own words, and the message is in the transcript."""
    scripted.answer = lambda request: (401, {"error": {"message": "no such key"}})
    error = chat("keep this", code=4).stderr
    assert "no such key" in error
    shown = hermes("sessions", "list", "--json", home=home)
    session = json.loads(shown.stdout)[0]["id"]
    assert "keep this" in hermes("sessions", "show", session, "--all", home=home).stdout


def test_the_key_of_the_profile_is_sent_and_shown_nowhere(
    scripted: ScriptedModel, home: Path, chat: Chat
) -> None:
    """The key comes from the profile's .env; a stray variable of the client library changes nothing."""
    home.mkdir(mode=0o700)
    (home / ".env").write_text("OPENAI_API_KEY=sk-of-this-profile-0123456789\n")
    done = hermes(
        "chat", "hello", home=home, env={**model(scripted), "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    )
    assert done.returncode == 0, done.stderr
    assert scripted.headers[0]["authorization"] == "Bearer sk-of-this-profile-0123456789"
    assert "sk-of" not in done.stdout + done.stderr


def test_sigterm_ends_the_session_like_an_exit(scripted: ScriptedModel, home: Path) -> None:
    """SIGTERM in the middle of an answer: the session's end is kept, and the next process delivers it."""
    scripted.answer = lambda request: [{"content": "never"}, "hang"]
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes", "chat", "a long question"],
        env={"PYTHONSAFEPATH": "1", "HERMES_HOME": str(home), "PATH": "/usr/bin:/bin", **model(scripted)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert scripted.reached.wait(30)
    child.send_signal(signal.SIGTERM)
    _, error = child.communicate(timeout=30)
    assert child.returncode == 143, error
    assert "Traceback" not in error
    rows = json.loads(hermes("sessions", "list", "--json", home=home).stdout)
    assert rows[0]["turns"] == 0


def test_a_conversation_at_a_terminal(scripted: ScriptedModel, home: Path) -> None:
    """Several turns, several lines in one, a command, a typo, and Ctrl-D to leave."""
    scripted.answer = lambda request: says(f"I heard {len(request['messages'])} messages.")
    with Terminal("chat", home=home, env=model(scripted)) as term:
        term.expect("Ctrl-D leaves")
        term.expect(">")
        term.send("first line\x1b\rsecond line\r")
        term.expect("I heard 2 messages.")
        term.expect(">")
        assert scripted.requests[-1]["messages"][-1]["content"] == "first line\nsecond line"
        term.send("/ussage\r")
        term.expect("did you mean /usage?")
        term.expect(">")
        term.send("/usage\r")
        term.expect("prompt tokens")
        term.expect(">")
        term.send("/new\r")
        term.expect("session 2")
        term.expect(">")
        term.send("\x1b[200~pasted\nlines\x1b[201~")
        term.send("\r")
        term.expect("I heard 2 messages.")
        assert scripted.requests[-1]["messages"][-1]["content"].startswith("pasted\nlines")
        term.expect(">")
        term.send("\x04")
        assert term.wait() == 0
    assert "Traceback" not in term.screen
    assert len(json.loads(hermes("sessions", "list", "--json", home=home).stdout)) == 2


def test_ctrl_c_stops_the_answer_and_not_the_program(scripted: ScriptedModel, home: Path) -> None:
    """An answer that is stopped is not remembered; the conversation goes on."""
    scripted.answer = lambda request: [{"content": "on and on"}, "hang"]
    with Terminal("chat", home=home, env=model(scripted)) as term:
        term.expect(">")
        term.send("tell me everything\r")
        term.expect("on and on")
        term.send("\x03")
        term.expect("stopped; this turn is not remembered")
        term.expect(">")
        scripted.proceed.set()
        scripted.answer = lambda request: says("better now")
        term.send("something short\r")
        term.expect("better now")
        term.expect(">")
        term.send("\x03")
        term.send("\x04")
        assert term.wait() == 0


def test_a_message_that_failed_stands_at_the_prompt_again(scripted: ScriptedModel, home: Path) -> None:
    """After an error the message can be sent again by Enter."""
    scripted.answer = lambda request: (401, {"error": {"message": "bad key"}})
    with Terminal("chat", home=home, env=model(scripted)) as term:
        term.expect(">")
        term.send("precious words\r")
        term.expect("bad key")
        term.expect("precious words")
        scripted.answer = lambda request: says("got it")
        term.send("\r")
        term.expect("got it")
        term.expect(">")
        term.send("\x04")
        assert term.wait() == 0
    assert scripted.requests[-1]["messages"][-1]["content"] == "precious words"


def test_two_profiles_hear_nothing_of_each_other(scripted: ScriptedModel, home: Path) -> None:
    """What is said in one profile is neither recalled nor listed in another."""
    assert hermes("profile", "create", "work", home=home).returncode == 0
    hermes("-p", "work", "chat", "The vault code is 7319 tango", home=home, env=model(scripted))
    hermes("chat", "What is the vault code?", home=home, env=model(scripted))
    assert "tango" not in str(scripted.requests[-1])
    assert json.loads(hermes("sessions", "search", "tango", "--json", home=home).stdout) == []
    found = json.loads(hermes("-p", "work", "sessions", "search", "vault tango", "--json", home=home).stdout)
    assert found[0]["content"] == "The vault code is 7319 tango"


def test_a_tool_stores_an_entry_and_it_is_listed(scripted: ScriptedModel, home: Path, chat: Chat) -> None:
    """The model's call of the memory tool is carried out, and the person can see it."""
    entry = {"action": "add", "target": "user", "content": "Drinks green tea"}
    scripted.answer = lambda request: (
        says("Noted.") if request["messages"][-1]["role"] == "tool" else calls("memory", entry)
    )
    assert chat("I drink green tea").stdout == "Noted.\n"
    assert "Drinks green tea" in hermes("memory", "list", home=home).stdout


def test_four_chats_at_once_on_one_profile(scripted: ScriptedModel, home: Path, chat: Chat) -> None:
    """Several processes talk over one profile, and every turn is there in the end."""
    threads = [threading.Thread(target=chat, args=(f"fact number {n} is kept",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = json.loads(hermes("sessions", "search", "is kept", "--json", home=home).stdout)
    assert sorted(row["content"] for row in found) == [f"fact number {n} is kept" for n in range(4)]
    assert hermes("memory", "journal", "flush", "--wait", home=home).returncode == 0
    status = json.loads(hermes("memory", "status", "--json", home=home).stdout)
    assert status["provider"]["details"]["turns"] == 4


@pytest.mark.parametrize(
    ("wanted", "recall", "tool"),
    [
        pytest.param("off", False, False, marks=pytest.mark.long),
        ("on", True, False),
        pytest.param("verbose", True, True, marks=pytest.mark.long),
    ],
)
def test_what_is_shown_of_memory_is_the_persons_choice(
    scripted: ScriptedModel, chat: Chat, wanted: str, recall: bool, tool: bool
) -> None:
    """display.memory_notifications: nothing, what was recalled, or the tools as well."""
    chat("My boat is called Marlin and lies in Piran.")
    scripted.answer = lambda request: (
        says("ok")
        if request["messages"][-1]["role"] == "tool"
        else calls("local_search", {"query": "Marlin"})
    )
    error = chat("--set", f"display.memory_notifications={wanted}", "What is my boat called?").stderr
    assert ("local: " in error, "local_search ..." in error) == (recall, tool)


def test_without_the_client_library_the_command_says_how_to_install_it(home: Path, tmp_path: Path) -> None:
    """The extra is missing: exit 4 and the command that brings it."""
    (tmp_path / "openai.py").write_text("raise ImportError('no module named openai')")
    env = {
        "PYTHONPATH": str(tmp_path),
        "HERMES__MODEL__BASE_URL": "http://127.0.0.1:9/v1",
        "HERMES__MODEL__NAME": "m",
    }
    done = hermes("chat", "hello", home=home, env=env)
    assert done.returncode == 4
    assert "hermes-framework[chat]" in done.stderr
    assert "Traceback" not in done.stderr
