"""A conversation with the memory provider that the profile chooses, as an agent leads it; printed as JSON.

Run as a program in the environment that the plugin is installed in: ``lifecycle.py first`` tells it things,
``lifecycle.py second``, another process, asks for them; both may be given a tool call, ``NAME ARGUMENTS``.
``HERMES_HOME`` says which profile.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from hermes.containers import Hermes

FACTS = (
    ("My bicycle is a green Peugeot from 1987.", "A classic! I will remember your green Peugeot."),
    ("The launch of project Zephyr is on the 14th of May.", "Noted: Zephyr launches on the 14th of May."),
    ("My sister Henrietta lives in Trondheim.", "Henrietta in Trondheim, understood."),
)
QUESTIONS = (
    "Which bicycle do I have, the Peugeot?",
    "When is the Zephyr launch?",
    "Where does Henrietta live?",
    "Which tea do I drink, Earl Grey?",
)
MIRRORED = "The user prefers Earl Grey tea in the morning."
SESSION = "20261201_080000_first"


def messages() -> list[dict[str, Any]]:
    """The transcript of what was said."""
    return [
        {"role": role, "content": text}
        for pair in FACTS
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def first(manager: Any) -> dict[str, Any]:
    """Three turns, a write to the built-in memory, a compression, a subagent, and on into another session."""
    manager.initialize_all(session_id=SESSION, platform="cli", cwd="/", user_id="u1")
    heard: dict[str, Any] = {"prompt": manager.build_system_prompt()}
    for number, (said, answered) in enumerate(FACTS, 1):
        manager.on_turn_start(number, said)
        manager.prefetch_all(said)
        manager.sync_all(said, answered, messages=messages()[: number * 2])
        manager.queue_prefetch_all(said)
    written = manager.handle_tool_call("memory", {"action": "add", "target": "memory", "content": MIRRORED})
    heard["written"] = json.loads(written)
    heard["summary"] = manager.on_pre_compress(messages())
    manager.on_delegation("count the bicycles", "one", child_session_id="child-1")
    manager.flush_pending(30)
    manager.commit_session_boundary_async(
        messages(), new_session_id=f"{SESSION}_2", parent_session_id=SESSION
    )
    manager.sync_all("What did we talk about?", "Bicycles, Zephyr and Henrietta.")
    manager.flush_pending(30)
    return heard


def second(manager: Any) -> dict[str, Any]:
    """Another process: what was said comes back."""
    manager.initialize_all(session_id="20261201_090000_second", platform="cli", cwd="/", user_id="u1")
    return {
        "recalled": [manager.prefetch_all(question) for question in QUESTIONS],
        "unknown": json.loads(manager.handle_tool_call("no_such_tool", {})),
    }


def main(step: str, tool: str = "", arguments: str = "{}") -> None:
    """Run *step* and print what was heard, with the state of the provider then and what the end left."""
    with Hermes().open() as me:
        provider = me.memory_provider()
        assert provider is not None
        heard: dict[str, Any] = {"name": provider.name, "available": provider.is_available()}
        manager = me.memory_manager()
        heard |= {"first": first, "second": second}[step](manager)
        heard["answer"] = json.loads(manager.handle_tool_call(tool, json.loads(arguments))) if tool else None
        heard["tools"] = sorted(manager.get_all_tool_names() - {"memory"})
        heard["state"] = [f"{seat.state} {seat.reason}".strip() for seat in manager.status().providers]
        report = manager.shutdown_all()
        heard["left"] = report.undelivered
        heard["trouble"] = [*report.stuck, *report.failed.values()]
    print(json.dumps(heard))


if __name__ == "__main__":
    main(*sys.argv[1:])
