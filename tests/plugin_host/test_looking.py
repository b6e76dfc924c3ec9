"""What is shown of a plugin that was loaded, and what its papers say leaves the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.memory.lanes import Limits
from hermes.plugin_host.context import Registered
from hermes.plugin_host.looking import leaves_device, look
from tests.memory.providers import Recording


class Telling(Recording):
    """A provider with something to show."""

    def get_config_schema(self) -> list[dict[str, Any]]:
        """One field."""
        return [{"key": "region", "default": "eu"}]

    def backup_paths(self) -> list[str]:
        """State elsewhere."""
        return ["/elsewhere"]


class Failing(Recording):
    """A provider that answers nothing."""

    def get_config_schema(self) -> list[dict[str, Any]]:
        """Raises."""
        raise RuntimeError("no form")

    def backup_paths(self) -> Any:
        """Not a list."""
        return None


def test_what_it_says_of_itself() -> None:
    """Its own name, tools in either form, fields, paths, hooks in play and what is not."""
    tools = [
        {"name": "a", "description": "Says\n a.", "parameters": {}},
        {"type": "function", "function": {"name": "b", "parameters": {}}},
    ]
    registered = Registered(hooks={"pre_llm_call": [print], "other": [print]}, problem="it stopped half-way")
    found = look(Telling("own", tools=tools), "notes", registered, Limits())
    assert found.own_name == "own"
    assert found.tools == (("a", "Says a."), ("b", ""))
    assert found.fields == ({"key": "region", "default": "eu"},)
    assert found.backup_paths == ("/elsewhere",)
    assert (found.hooks, found.unused) == (("pre_llm_call",), ("hook other",))
    assert found.problems == ("it stopped half-way",)


def test_what_it_raises_is_shown() -> None:
    """A member that raises is a line of the answer and does not hide the rest."""
    found = look(Failing("notes"), "notes", Registered(), Limits())
    assert found.own_name == ""
    assert found.problems == ("get_config_schema: RuntimeError: no form",)
    assert found.backup_paths == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# P\n\nHi.\n\n## What leaves the device\n\nThe turn.\n\n- tools too\n\n## Next\n\nx\n",
            "The turn.\n\n- tools too",
        ),
        ("# P\n\n### Data that leaves your machine\nAll.\n#### More\nYes.\n## Z\n", "All.\n#### More\nYes."),
        ("# P\n\nYour words are sent off-device to us.\n\nOther.\n", "Your words are sent off-device to us."),
        ("# 插件\n\n## 哪些内容会离开设备\n\n全部。\n", "全部。"),
        ("# P\n\nNothing is said of it.\n", ""),
    ],
)
def test_what_leaves_the_device(tmp_path: Path, text: str, said: str) -> None:
    """The section of the README whose heading speaks of it, or else the paragraphs that do."""
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    assert leaves_device(tmp_path, {}) == said


def test_the_manifest_may_say_what_leaves_the_device(tmp_path: Path) -> None:
    """A key of the manifest comes before the README; without either nothing is claimed."""
    assert (
        leaves_device(tmp_path, {"leaves_device": ["messages", "tool results"]}) == "messages, tool results"
    )
    assert leaves_device(tmp_path, {}) == leaves_device(None, {}) == ""
