"""The checks, in the order in which they are run and shown."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Check:
    """One rule, and the steps that try it: each ``module:function`` here, in a process of its own."""

    name: str
    rule: str
    steps: tuple[str, ...]


_ALL = (
    Check("loads", "it loads, and registers one memory provider", ("loading:loads",)),
    Check("manifest", "plugin.yaml says what the plugin is", ("papers:manifest",)),
    Check("readme", "the README says how to set it up and what leaves the device", ("papers:readme",)),
    Check("hooks", "the hooks in plugin.yaml are the hooks that are there", ("hooks:declared",)),
    Check("signatures", "the host can call every member", ("signatures:callable_by_the_host",)),
    Check("config-schema", "the form can be asked and answered", ("form:fields",)),
    Check(
        "availability", "is_available looks at settings only, never at the network", ("starting:available",)
    ),
    Check("starts", "it starts for a session, and runs through one without a mistake", ("starting:session",)),
    Check("tools", "the tools can be offered to a model", ("tools:schemas",)),
    Check("tool-results", "every tool answers with JSON", ("tools:results",)),
    Check(
        "accepted",
        "where sync_turn accepts, it returns at once",
        ("delivery:accepts",),
    ),
    Check(
        "stored",
        "where sync_turn stores, it raises when the backend is down, and another process reads the turn",
        ("delivery:refuses", "delivery:stores", "delivery:reads"),
    ),
    Check("session-switch", "a turn after a switch belongs to the new session", ("sessions:switched",)),
    Check("storage", "everything is stored below hermes_home", ("storage:below_home",)),
    Check(
        "profiles",
        "two profiles never meet",
        ("profiles:tell_the_first", "profiles:ask_the_second", "profiles:both_at_once"),
    ),
    Check("secrets", "no key is printed, logged, answered or stored in the open", ("secrecy:kept",)),
    Check("shutdown", "threads, files and programs are gone after shutdown", ("ending:gone",)),
    Check("cli", "cli.py builds a tree of commands", ("tree:built",)),
)

CHECKS: Mapping[str, Check] = {check.name: check for check in _ALL}
"""Every check, by name."""
