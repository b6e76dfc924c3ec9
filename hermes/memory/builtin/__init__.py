"""The built-in memory: two small files that a person can read and edit, and the ``memory`` tool on them."""

from hermes.memory.builtin.approval import Pending
from hermes.memory.builtin.history import Record
from hermes.memory.builtin.memory import BuiltinMemory, Decision, Forgotten, Reverted
from hermes.memory.builtin.provider import BuiltinMemoryProvider
from hermes.memory.builtin.store import Applied
from hermes.memory.builtin.tool import changes_of
from hermes.memory.builtin.undoing import Undone
from hermes.memory.builtin.values import (
    TARGETS,
    Change,
    Enabled,
    Entry,
    Limits,
    Operation,
    Origin,
    Target,
    Usage,
)

__all__ = [
    "TARGETS",
    "Applied",
    "BuiltinMemory",
    "BuiltinMemoryProvider",
    "Change",
    "Decision",
    "Enabled",
    "Entry",
    "Forgotten",
    "Limits",
    "Operation",
    "Origin",
    "Pending",
    "Record",
    "Reverted",
    "Target",
    "Undone",
    "Usage",
    "changes_of",
]
