"""Two hundred turns over five sessions, two compressions, one crash and two profiles."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conversation.server import ScriptedModel, says
from tests.support import hermes

ROOT = Path(__file__).parents[2]
NAMES = (
    "Amaranth",
    "Borage",
    "Chervil",
    "Dill",
    "Epazote",
    "Fennel",
    "Galangal",
    "Hyssop",
    "Juniper",
    "Lovage",
)
THINGS = ("boat", "cellar", "garage", "piano", "bicycle", "greenhouse", "attic", "workshop", "tent", "kayak")


def fact(profile: str, n: int) -> tuple[str, str]:
    """The *n*-th thing that is told in a profile, and the word by which it is known again."""
    code = f"{NAMES[n % 10]}{n}{profile}"
    return f"The password word of my {THINGS[n // 10 % 10]} number {n} is {code}, keep it in mind.", code


class Talker:
    """A process that holds a conversation."""

    def __init__(self, home: Path, profile: str, model: ScriptedModel) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.conversation.program",
                str(home),
                profile,
                model.base_url,
                "200000",
            ],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "ready"

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def send(self, words: str) -> None:
        """Give it something to do."""
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def do(self, words: str) -> str:
        """Give it something to do, and what came of it."""
        self.send(words)
        return self.line()

    def kill(self) -> None:
        """As a power cut does it."""
        self.process.kill()
        self.process.communicate()

    def leave(self) -> None:
        """End of input: it ends by itself."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.long)])
def test_every_fact_is_recalled_none_crosses_and_nothing_is_stored_twice(home: Path, share: int) -> None:
    """What was planted in one turn reaches the model when it is asked for later, in its own profile alone."""
    model = ScriptedModel(lambda request: _answer(request))
    try:
        for profile in ("work", "private"):
            assert hermes("profile", "create", profile, home=home).returncode == 0
        work, private = Talker(home, "work", model), Talker(home, "private", model)
        said = {"work": 0, "private": 0}

        def plant(talker: Talker, profile: str, count: int) -> None:
            for _ in range(count // share):
                assert talker.do(fact(profile, said[profile])[0]) == "done"
                said[profile] += 1

        plant(work, "work", 40)
        assert work.do("/compress") == "compressed"
        plant(work, "work", 20)
        work.do("/new")
        plant(work, "work", 20)
        assert work.do("/compress") == "compressed"
        plant(private, "private", 30)
        work.send("hang: an answer that never comes to its end")
        assert model.reached.wait(30)
        work.kill()
        model.proceed.set()
        work = Talker(home, "work", model)
        plant(work, "work", 10)
        private.do("/new")
        plant(private, "private", 10)
        work.leave()
        private.leave()

        asked = {profile: Talker(home, profile, model) for profile in said}
        for profile, talker in asked.items():
            for n in range(0, said[profile], 2):
                words, code = fact(profile, n)
                thing = re.search(r"my (\w+) number (\d+)", words)
                assert thing is not None
                assert talker.do(f"What is the password word of my {thing[1]} number {thing[2]}?") == "done"
                assert code in _background(model.requests[-1]), (profile, n)
            talker.leave()

        for profile, other in (("work", "private"), ("private", "work")):
            stored = [
                json.loads(row)
                for row in hermes("-p", profile, "memory", "export", home=home).stdout.splitlines()
            ]
            texts = [row["text"] for row in stored if row.get("role") == "user" or "text" in row]
            planted = [text for text in texts if "keep it in mind" in text and "is" in text]
            users = [text for text in planted if text.startswith("The password word")]
            assert sorted(users) == sorted(fact(profile, n)[0] for n in range(said[profile]))
            assert not any(fact(other, n)[1] in text for text in texts for n in range(said[other]))
        turns = sum(said.values()) + sum(-(-count // 2) for count in said.values())
        assert turns >= 190 // share
        sessions = json.loads(hermes("-p", "work", "sessions", "list", "--json", home=home).stdout)
        assert len(sessions) == 4
        assert not any("memory-context" in line for line in _exported(home))
    finally:
        model.close()


def _answer(request: Any) -> Any:
    last = request["messages"][-1]["content"]
    if "summary" in request["messages"][0]["content"]:
        return says("Passwords were told.")
    if last.startswith("hang:"):
        return [{"content": "It begins"}, "hang"]
    return says("I will keep that.")


def _background(request: Any) -> str:
    """What was recalled for the last message of *request*."""
    text = request["messages"][-1]["content"]
    return str(text[text.index("<memory-context>") :]) if "<memory-context>" in text else ""


def _exported(home: Path) -> list[str]:
    return [
        line
        for profile in ("work", "private")
        for line in hermes("-p", profile, "sessions", "export", home=home).stdout.splitlines()
    ]
