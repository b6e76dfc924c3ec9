"""The hooks in a settings file of Claude Code: ours come and go, those of others stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.clients.claude_hooks import EVENTS, install, installed, remove
from hermes.errors import StoreUnavailable

COMMAND = ["/opt/hermes", "--home", "/h", "--profile", "work"]
THEIRS = """{
  "model": "opus",
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}
    ],
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [{"type": "command", "command": "check hooks run Stop"}]
      }
    ]
  },
  "permissions": {"allow": ["Bash(ls)"]}
}
"""


@pytest.mark.parametrize("text", [None, "", "{}", '{"model": "x"}', THEIRS, '{\n  "hooks": {}\n}\n'])
def test_installed_and_removed_without_a_trace(text: str | None, tmp_path: Path) -> None:
    """Each event has our command once, however often it is installed; removed, the others are as they were."""
    path = tmp_path / ".claude" / "settings.json"
    if text is not None:
        path.parent.mkdir()
        path.write_text(text)
    install(path, COMMAND).write()
    assert installed(path) == list(EVENTS)
    assert not install(path, COMMAND).differs
    hooks = json.loads(path.read_text())["hooks"]
    for event, seconds in EVENTS.items():
        (ours,) = hooks[event][-1]["hooks"]
        args = [*COMMAND[1:], "hooks", "run", event]
        assert ours == {"type": "command", "command": "/opt/hermes", "args": args, "timeout": seconds}
    remove(path).write()
    assert installed(path) == []
    assert not remove(path).differs
    if text == THEIRS:
        assert path.read_text() == THEIRS
    else:
        assert json.loads(path.read_text()) == ({"model": "x"} if text and "model" in text else {})


def test_no_line_of_others_changes(tmp_path: Path) -> None:
    """Only lines are added, and a comma; groups of others are not written anew."""
    path = tmp_path / "settings.json"
    path.write_text(THEIRS)
    after = install(path, COMMAND).after.splitlines()
    assert [line for line in THEIRS.splitlines() if line not in after and f"{line}," not in after] == []


def test_another_command_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """Installed for another profile, the hooks are changed where they stand, also in a group with others."""
    path = tmp_path / "settings.json"
    install(path, COMMAND).write()
    document = json.loads(path.read_text())
    (group,) = document["hooks"]["Stop"]
    group["hooks"].insert(0, {"type": "command", "command": "say done"})
    document["hooks"]["Stop"].append({"hooks": [group["hooks"][1]]})  # a second one of ours
    path.write_text(json.dumps(document))
    install(path, ["/new/hermes", *COMMAND[1:]]).write()
    (group,) = json.loads(path.read_text())["hooks"]["Stop"]
    assert [command["command"] for command in group["hooks"]] == ["say done", "/new/hermes"]
    remove(path).write()
    left = json.loads(path.read_text())["hooks"]
    assert left == {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": 1, "Stop": []}}x']
)
def test_what_is_not_understood_is_left_alone(text: str, tmp_path: Path) -> None:
    """A file of another form is named, and not a byte of it changes."""
    path = tmp_path / "settings.json"
    path.write_text(text)
    for act in (lambda: install(path, COMMAND), lambda: remove(path), lambda: installed(path)):
        with pytest.raises(StoreUnavailable, match=r"settings\.json"):
            act()
    assert path.read_text() == text


def test_odd_groups_of_others_are_passed_by(tmp_path: Path) -> None:
    """Groups without commands, commands that are no objects and other kinds of hooks stop nothing."""
    path = tmp_path / "settings.json"
    odd = [{}, 5, {"hooks": None}, {"hooks": ["x", {"type": "prompt", "prompt": "p"}]}]
    path.write_text(json.dumps({"hooks": {"Stop": odd}}))
    install(path, COMMAND).write()
    remove(path).write()
    assert json.loads(path.read_text()) == {"hooks": {"Stop": odd}}
