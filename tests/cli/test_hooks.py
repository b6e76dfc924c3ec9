"""``hermes hooks``: each event is a process of its own, and none of them ever fails the client."""

from __future__ import annotations

import json
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support import hermes, python

BEGIN = "UserPromptSubmit"


def event(home: Path, name: str, *front: str, **given: Any) -> dict[str, Any] | None:
    """What the client is told for an event of session s-1; it must never be told of a failure."""
    text = json.dumps({"session_id": "s-1", "hook_event_name": name} | given)
    done = hermes(*front, "hooks", "run", name, home=home, stdin=text)
    assert done.returncode == 0
    assert done.stderr == "", done.stderr
    answer: dict[str, Any] | None = json.loads(done.stdout) if done.stdout else None
    return answer


def turn(home: Path, number: int, said: str, answered: str, **given: Any) -> None:
    """A prompt and its answer."""
    event(home, BEGIN, prompt=said, prompt_id=f"p-{number}", **given)
    event(home, "Stop", prompt_id=f"p-{number}", last_assistant_message=answered, **given)


def stored(home: Path) -> list[tuple[str, str]]:
    """Who said what, of all turns that the provider stores."""
    lines = hermes("memory", "export", home=home).stdout.splitlines()
    records = map(json.loads, lines)
    return [(one["role"], one["text"]) for one in records if one.get("role") in ("user", "assistant")]


def waiting(home: Path) -> list[Path]:
    """Prompts without an answer."""
    return sorted((home / "hooks" / "claude-code").glob("*.json"))


def test_what_one_session_said_is_recalled_in_another(home: Path) -> None:
    """A turn is stored once; a prompt in another session is answered with it, in the documented form."""
    hermes("memory", "add", "Ada lives in Graz", "--target", "user", home=home)
    first = event(home, BEGIN, prompt="The kiln of Rosa is in Hall B.", prompt_id="p-1")
    assert first is not None
    assert "Ada lives in Graz" in first["hookSpecificOutput"]["additionalContext"]
    (pending,) = waiting(home)
    assert stat.S_IMODE(pending.stat().st_mode) == 0o600
    assert event(home, "Stop", prompt_id="p-1", last_assistant_message="Noted.") is None
    assert waiting(home) == []
    assert stored(home) == [("user", "The kiln of Rosa is in Hall B."), ("assistant", "Noted.")]

    answer = event(home, BEGIN, session_id="s-2", prompt="Where is the kiln of Rosa?", prompt_id="q-1")
    assert answer is not None
    assert set(answer) == {"hookSpecificOutput"}
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == BEGIN
    assert "Hall B" in output["additionalContext"]
    again = event(home, BEGIN, session_id="s-2", prompt="Where is the kiln of Rosa, again?", prompt_id="q-2")
    assert again is not None
    assert "Hall B" in again["hookSpecificOutput"]["additionalContext"]
    assert (
        "Ada lives in Graz" not in again["hookSpecificOutput"]["additionalContext"]
    )  # said once in a session


@pytest.mark.long
def test_a_repeated_event_stores_nothing_twice(home: Path) -> None:
    """The answer event comes twice in a row, then twice at once: one turn each; equal prompts are two turns."""
    event(home, BEGIN, prompt="first thing", prompt_id="p-1")
    answer = {"last_assistant_message": "fine", "prompt_id": "p-1"}
    event(home, "Stop", **answer)
    event(home, "Stop", **answer, stop_hook_active=True)
    event(home, BEGIN, prompt="second thing", prompt_id="p-2")
    threads = [
        threading.Thread(
            target=event, args=(home, "Stop"), kwargs={"prompt_id": "p-2", "last_assistant_message": "good"}
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(2):  # versions that give no prompt_id
        event(home, BEGIN, prompt="go on")
        event(home, "Stop", last_assistant_message="on it")
    said = [text for role, text in stored(home) if role == "user"]
    assert said == ["first thing", "second thing", "go on", "go on"]


def test_the_end_is_told_once_with_all_turns(home: Path) -> None:
    """Processes come and go and the session stays open; its end has every turn, and comes once."""
    plugin(home)
    for number in range(3):
        turn(home, number, f"question {number}", f"answer {number}")
        assert (
            hermes("memory", "journal", "flush", home=home).returncode == 0
        )  # another process looks for orphans
    event(home, BEGIN, session_id="s-2", prompt="of another session, never answered")
    event(home, "SessionEnd", session_id="s-2", reason="other")
    assert told(home, "end") == []
    event(home, "SessionEnd", reason="other")
    event(home, "SessionEnd", reason="other")
    hermes("memory", "journal", "flush", home=home)
    (end,) = told(home, "end")
    assert [message["content"] for message in end["messages"]] == [
        text for n in range(3) for text in (f"question {n}", f"answer {n}")
    ]
    assert [one["user"] for one in told(home, "turn")] == ["question 0", "question 1", "question 2"]
    assert {one["session"] for one in told(home, "turn")} == {"claude-code-s-1"}


PLUGIN = """
import json, os
from pathlib import Path
from agent.memory_provider import MemoryProvider

class Provider(MemoryProvider):
    delivery = "stored"
    name = "witness"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        self.file = Path(kwargs["hermes_home"]) / "witness.jsonl"

    def get_tool_schemas(self):
        return []

    def _note(self, **what):
        with self.file.open("a") as file:
            file.write(json.dumps(what) + "\\n")

    def prefetch(self, query, *, session_id=""):
        known = self.file.with_name("known.txt")
        return known.read_text() if known.exists() else ""

    def sync_turn(self, user, assistant, *, session_id="", messages=None):
        self._note(kind="turn", user=user, session=session_id)

    def on_session_end(self, messages):
        self._note(kind="end", messages=messages)

def register(ctx):
    ctx.register_memory_provider(Provider())
"""


def plugin(home: Path) -> None:
    """A provider that writes down what it is told, in a process of its own."""
    folder = home / "plugins" / "witness"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "__init__.py").write_text(PLUGIN)
    (folder / "plugin.yaml").write_text("name: witness\nversion: 1.0.0\ndescription: for a test\n")
    (home / "config.yaml").write_text("memory:\n  provider: witness\n")


def told(home: Path, kind: str) -> list[dict[str, Any]]:
    """What the witness was told."""
    path = home / "witness.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [one for one in map(json.loads, lines) if one["kind"] == kind]


@pytest.mark.long
def test_what_is_no_turn_is_not_stored(home: Path) -> None:
    """Slash commands, subagents, empty prompts, other events, an answer to another prompt, no answer at all."""
    assert event(home, BEGIN, prompt="/compact now", prompt_id="p-0") is None
    event(home, "Stop", prompt_id="p-0", last_assistant_message="compacted")
    assert event(home, BEGIN, prompt="for a helper", prompt_id="p-1", agent_id="a-1") is None
    event(home, "Stop", prompt_id="p-1", last_assistant_message="x", agent_id="a-1")
    assert event(home, BEGIN, prompt="   ") is None
    event(home, BEGIN, prompt="interrupted", prompt_id="p-2")
    event(home, "Stop", prompt_id="p-3", last_assistant_message="of another prompt")
    event(home, "Stop", prompt_id="p-2", last_assistant_message=" ")
    event(home, "SubagentStop", prompt_id="p-2", last_assistant_message="no")
    event(home, "PreCompact", trigger="auto")
    event(home, BEGIN, prompt="/clear")  # takes the place of the one that was interrupted
    event(home, "Stop", last_assistant_message="cleared")
    assert stored(home) == []


@pytest.mark.long
def test_an_older_client_without_the_answer_in_the_event(home: Path, tmp_path: Path) -> None:
    """The answer is then read from the transcript: all of it that came behind the last prompt."""
    from tests.importers.making import claude_code

    transcript = claude_code(tmp_path)
    rows = transcript.read_text().splitlines()
    last = json.loads(rows[5])
    rows.append(
        json.dumps({**last, "uuid": "u10", "parentUuid": "u9", "message": {**last["message"], "id": "m-9"}})
    )
    transcript.write_text("\n".join(rows))
    event(home, BEGIN, prompt="Four hives, since May.", prompt_id="p-1")
    event(home, "Stop", prompt_id="p-1", transcript_path=str(transcript))
    assert stored(home) == [("user", "Four hives, since May."), ("assistant", "How many hives?")]


def test_the_context_stays_short(home: Path) -> None:
    """However much is remembered, what is added for the model is under 9,000 characters and closes its fences."""
    plugin(home)
    with (home / "config.yaml").open("a") as settings:
        settings.write("  memory_char_limit: 100000\n")
    (home / "memories").mkdir(mode=0o700)
    entries = (f"Entry {n} about the kiln: {'clay ' * 40}" for n in range(60))
    (home / "memories" / "MEMORY.md").write_text("\n§\n".join(entries))
    (home / "known.txt").write_text(
        "\n".join(f"line {n} </memory-context> of what is known" for n in range(2000))
    )
    answer = event(home, BEGIN, prompt="What about the kiln?", prompt_id="p-1")
    assert answer is not None
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert 8000 < len(context) < 9000
    assert "line 9 " in context
    assert context.count("<memory-context>") == context.count("</memory-context>") == 2


@pytest.mark.long
def test_secrets_in_a_prompt(home: Path) -> None:
    """What was pasted is masked where it is stored; the file that held it until the answer came is gone."""
    key = "sk-proj-" + "a1B2c3D4e5F6" * 4
    turn(home, 1, f"use OPENAI_API_KEY={key} for Rosa", "I will.")
    assert len(stored(home)) == 2
    assert not [path for path in home.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_without_a_provider(home: Path) -> None:
    """With the provider off, entries are still shown, and nothing is kept or left behind."""
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("memory:\n  provider: ''\n")
    hermes("memory", "add", "Ada lives in Graz", home=home)
    answer = event(home, BEGIN, prompt="Where do I live?", prompt_id="p-1")
    assert answer is not None
    assert "Graz" in answer["hookSpecificOutput"]["additionalContext"]
    event(home, "Stop", prompt_id="p-1", last_assistant_message="In Graz.")
    event(home, "SessionEnd")
    assert waiting(home) == []
    assert not (home / "journal.db").exists()


def test_broken_input_never_fails_the_client(home: Path) -> None:
    """Exit 0 and nothing on standard output, whatever comes in; what was wrong is in the log."""
    hermes("memory", "add", "something", home=home)
    cases = [
        (BEGIN, "", False),
        (BEGIN, "{", True),
        (BEGIN, "null", True),
        (BEGIN, '{"prompt": 5, "session_id": {}}', False),
        ("Stop", "[1]", True),
        ("Stop", "\x00", True),
        ("Stop", '{"prompt_id": 7, "transcript_path": "/nowhere"}', False),
        ("Unknown", "{}", False),
    ]
    logged = 0
    for name, stdin, wrong in cases:
        done = hermes("hooks", "run", name, home=home, stdin=stdin)
        assert (done.returncode, done.stdout) == (0, "")
        assert "Traceback" not in done.stderr
        assert bool(done.stderr) == wrong
        logged += wrong
    log = (home / "logs" / "memory.log").read_text().splitlines()
    assert sum("hook " in line for line in log) == logged
    surrogate = '{"session_id": "s", "prompt": "x \\ud83d something"}'
    assert "something" in hermes("hooks", "run", BEGIN, home=home, stdin=surrogate).stdout


def test_a_home_that_cannot_be_used_never_fails_the_client(home: Path, tmp_path: Path) -> None:
    """No home yet, a damaged config.yaml, a profile that is gone: exit 0, silence, and the reason where it can be."""
    given = json.dumps({"session_id": "s", "prompt": "Where is the kiln?", "prompt_id": "p"})
    nothing = hermes("hooks", "run", "Stop", home=home, stdin=given)
    assert (nothing.returncode, nothing.stdout) == (0, "")
    gone = hermes("-p", "gone", "hooks", "run", BEGIN, home=home, stdin=given)
    assert (gone.returncode, gone.stdout) == (0, "")
    assert "gone" in gone.stderr
    assert not (home / "profiles").exists()
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text("memory: [broken\n")
    broken = hermes("hooks", "run", BEGIN, home=home, stdin=given)
    assert (broken.returncode, broken.stdout) == (0, "")
    assert "config.yaml" in broken.stderr
    assert "config.yaml" in (home / "logs" / "memory.log").read_text()
    file = tmp_path / "a file"
    file.write_text("")
    assert hermes("hooks", "run", BEGIN, home=file, stdin=given).returncode == 0


def test_a_home_that_is_read_only_is_still_recalled_from(reachable: Path) -> None:
    """Where nothing can be written the prompt is answered, and the answer event fails without the client knowing."""
    home = reachable / "home"
    turn(home, 1, "The kiln of Rosa is in Hall B.", "Noted.")
    for path in [*home.rglob("*"), home]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    given = {"session_id": "s-2", "prompt": "Where is the kiln of Rosa?", "prompt_id": "q-1"}
    try:
        for name in (BEGIN, "Stop", "SessionEnd"):
            text = json.dumps({**given, "last_assistant_message": "In Hall B."})
            done = hermes("hooks", "run", name, home=home, stdin=text, powerless=True)
            assert done.returncode == 0
            assert "Traceback" not in done.stderr
            if name == BEGIN:
                assert "Hall B" in done.stdout
            else:
                assert done.stdout == ""
    finally:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)


def test_a_killed_process_loses_no_answer_that_it_had_recorded(home: Path) -> None:
    """The turn is in the journal before anything is delivered: the next event hands it over."""
    event(home, BEGIN, prompt="The kiln is in Hall B.", prompt_id="p-1")
    text = json.dumps({"session_id": "s-1", "prompt_id": "p-1", "last_assistant_message": "Noted."})
    die = (
        "import os, sys; from hermes.memory.manager import MemoryManager as M;"
        "M.flush_pending = lambda *a: os.kill(os.getpid(), 9);"
        "sys.argv = ['hermes', 'hooks', 'run', 'Stop'];"
        "from hermes.cli import main; main()"
    )
    assert python("-c", die, env={"HERMES_HOME": str(home)}, stdin=text).returncode == -9
    event(home, "Stop", prompt_id="p-1", last_assistant_message="Noted.")
    event(home, "SessionEnd")
    assert [text for _, text in stored(home)] == ["The kiln is in Hall B.", "Noted."]


def test_the_heavy_packages_are_not_imported(home: Path) -> None:
    """pydantic, asyncio, openai and mcp take longer to import than a hook may: none is, nor is a parser."""
    home.mkdir(mode=0o700)
    code = (
        "import sys; _, name, home = sys.argv\n"
        "sys.argv = ['hermes', '--home', home, '--profile', 'default', 'hooks', 'run', name]\n"
        "from hermes.cli import main\n"
        "try: main()\n"
        "except SystemExit as exc: code = exc.code\n"
        "heavy = {'pydantic', 'asyncio', 'openai', 'mcp', 'anyio', 'httpx2', 'uvicorn', 'typer', 'urllib.request'}\n"
        "found = heavy & set(sys.modules)\n"
        "sys.stderr.write(f'{code} {sorted(found)}')"
    )
    for name, given in (
        (BEGIN, {"prompt": "Where is the kiln of Rosa?", "prompt_id": "p-1"}),
        ("Stop", {"prompt_id": "p-1", "last_assistant_message": "In Hall B."}),
        ("SessionEnd", {}),
    ):
        text = json.dumps({"session_id": "s-1", **given})
        done = python("-c", code, name, str(home), stdin=text)
        assert done.stderr == "0 []"
    assert len(stored(home)) == 2


def test_installed_the_way_the_client_runs_it(home: Path, tmp_path: Path) -> None:
    """What is installed is a command without a shell that works from any folder; status, remove, a second time."""
    env = {"HOME": str(tmp_path)}
    hermes("memory", "add", "Ada lives in Graz", home=home)
    assert json.loads(hermes("hooks", "status", "--json", home=home, env=env).stdout)["installed"] == []
    nobody = hermes("hooks", "install", "claude-code", home=home, env=env)
    assert nobody.returncode == 2
    assert not (tmp_path / ".claude").exists()
    done = hermes("hooks", "install", "claude-code", "--yes", home=home, env=env)
    assert done.returncode == 0, done.stderr
    assert "nothing to change" in hermes("hooks", "install", "claude-code", "-y", home=home, env=env).stdout
    status = json.loads(hermes("hooks", "status", "--json", home=home, env=env).stdout)
    assert status["installed"] == [BEGIN, "Stop", "SessionEnd"]
    assert status["missing"] == []
    settings = json.loads((tmp_path / ".claude" / "settings.json").read_text())
    hook = settings["hooks"][BEGIN][0]["hooks"][0]
    ran = subprocess.run(
        [hook["command"], *hook["args"]],
        input=json.dumps({"session_id": "s", "prompt": "Where do I live?"}),
        env={"PATH": "", "HERMES_HOME": str(tmp_path / "elsewhere")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Graz" in json.loads(ran.stdout)["hookSpecificOutput"]["additionalContext"]
    for words in (
        ["--home", str(home), "--profile", "gone"],
        ["--home", "/dev/null", "--profile", "default"],
    ):
        failed = hermes(*words, "hooks", "run", "Stop", home=home, stdin="{}")
        assert (failed.returncode, failed.stdout) == (0, "")
        assert failed.stderr.startswith("hermes: hook Stop: ") or words[1] == "/dev/null"
    removed = hermes("hooks", "remove", "claude-code", "--yes", home=home, env=env)
    assert removed.returncode == 0
    assert "hermes" not in (tmp_path / ".claude" / "settings.json").read_text()


def test_for_one_project_only(home: Path, tmp_path: Path) -> None:
    """--project writes the file that is not committed, in the folder where the command runs."""
    moved = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "moved")}
    args = ("hooks", "install", "claude-code", "--yes")
    hermes(*args, "--project", home=home, env=moved, cwd=tmp_path)
    assert "hooks" in (tmp_path / ".claude" / "settings.local.json").read_text()
    hermes(*args, home=home, env=moved, cwd=tmp_path)
    assert (tmp_path / "moved" / "settings.json").exists()
    assert hermes("hooks", "install", "emacs", home=home, env=moved).returncode == 3
