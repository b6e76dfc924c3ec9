"""Undo, provenance, and a history that stays small."""

from __future__ import annotations

import attrs
import pytest

from hermes.errors import NotFound
from hermes.memory.builtin import BuiltinMemory, BuiltinMemoryProvider, Change, Operation, Origin
from hermes.memory.builtin.history import MAX_BYTES
from hermes.paths import ProfilePaths
from tests.memory.builtin.conftest import Call


def texts(memory: BuiltinMemory) -> list[str]:
    """The entries of MEMORY.md."""
    return [entry.text for entry in memory.entries("memory")]


def test_undo_goes_back_step_by_step(call: Call, memory: BuiltinMemory) -> None:
    """A removal, a replacement and an addition by the model come back in turn, each in its place."""
    for content in ("a", "b", "c"):
        call(action="add", target="memory", content=content)
    call(action="replace", target="memory", old_text="b", content="B")
    call(action="remove", target="memory", old_text="a")
    assert memory.undo().changes == (Change("add", "memory", "a"),)
    assert texts(memory) == ["a", "B", "c"]
    assert memory.undo().changes == (Change("replace", "memory", "b", "B", "B"),)
    assert texts(memory) == ["a", "b", "c"]
    assert memory.undo().changes == (Change("remove", "memory", "c", "c", "c"),)
    memory.undo()
    memory.undo()
    assert texts(memory) == []
    with pytest.raises(NotFound):
        memory.undo()


def test_a_batch_is_undone_as_one(memory: BuiltinMemory) -> None:
    """All operations of a batch go back together."""
    memory.add("memory", "a")
    memory.apply("memory", [Operation("remove", old_text="a"), Operation("add", "b"), Operation("add", "c")])
    memory.undo()
    assert texts(memory) == ["a"]


def test_what_changed_since_is_told_and_left(memory: BuiltinMemory, paths: ProfilePaths) -> None:
    """An entry that a person has rewritten stays, the undo says so, and the next one goes further back."""
    memory.add("memory", "a")
    memory.add("memory", "b")
    path = paths.memories / "MEMORY.md"
    path.write_bytes(path.read_bytes().replace(b"b", b"by hand"))
    undone = memory.undo()
    assert undone.changes == ()
    assert undone.conflicts == ("changed since: b",)
    assert texts(memory) == ["a", "by hand"]
    memory.undo()
    assert texts(memory) == ["by hand"]


def test_a_write_that_never_happened_is_passed_over(memory: BuiltinMemory) -> None:
    """A process that died between the record and the file leaves nothing to undo."""
    memory.add("memory", "a")
    before = memory.store.read("memory")
    memory.add("memory", "b")
    memory.store.save("memory", before)
    memory.undo()
    assert texts(memory) == []


def test_a_torn_line_costs_one_record(memory: BuiltinMemory, paths: ProfilePaths) -> None:
    """What a dying writer left of a line is counted, and all others can be read."""
    memory.add("memory", "a")
    with (paths.memories / ".history.jsonl").open("ab") as file:
        file.write(b'{"id":"x","ta')
    memory.add("memory", "b")
    assert len(memory.history()) == 2
    assert any("1 damaged line" in warning for warning in memory.warnings())
    memory.undo()
    assert texts(memory) == ["a"]


def test_the_history_stays_small(memory: BuiltinMemory, paths: ProfilePaths) -> None:
    """Old records go, those that tell where a present entry came from stay, and the newest can be undone."""
    memory.add("memory", "lasting", origin=Origin("model", session_id="s1"))
    memory.add("user", "Ann", origin=Origin("model", session_id="s1"))
    filler = attrs.evolve(memory.history()[0], steps=memory.history()[0].steps * 50)
    path = paths.memories / ".history.jsonl"
    with path.open("ab") as file:
        for number in range(2 * MAX_BYTES // len(filler.as_line())):
            steps = tuple(attrs.evolve(step, content=f"gone {number} {'x' * 50}") for step in filler.steps)
            file.write(attrs.evolve(filler, id=str(number), steps=steps).as_line())
    memory.add("memory", "newest")
    assert path.stat().st_size < MAX_BYTES / 2
    lasting, _ = memory.entries("memory")
    assert lasting.origin is not None
    assert lasting.origin.session_id == "s1"
    (ann,) = memory.entries("user")
    assert ann.origin is not None
    memory.undo()
    assert texts(memory) == ["lasting"]
    reverted = memory.revert(session_id="s1", forget=True)
    assert {change.content for undone in reverted.undone for change in undone.changes} == {"lasting", "Ann"}


def test_revert_by_session(provider: BuiltinMemoryProvider, call: Call, memory: BuiltinMemory) -> None:
    """What came from one session goes, what it replaced comes back, all else stays."""
    call(action="add", target="memory", content="of s1")
    call(action="add", target="memory", content="old words")
    provider.on_session_switch("s2")
    call(action="add", target="memory", content="of s2")
    call(action="replace", target="memory", old_text="old words", content="new words")
    reverted = memory.revert(session_id="s2")
    assert texts(memory) == ["of s1", "old words"]
    assert [undone.changes[0].action for undone in reverted.undone] == ["replace", "remove"]
    assert memory.revert(session_id="s2").undone == ()


def test_revert_by_origin(provider: BuiltinMemoryProvider, memory: BuiltinMemory) -> None:
    """Everything that was written while untrusted text was in the turn can be taken back at once."""
    memory.add("memory", "mine")
    args = {"action": "add", "target": "memory", "content": "planted"}
    provider.handle_tool_call("memory", args, write_origin="untrusted")
    memory.revert(write_origin="untrusted")
    assert texts(memory) == ["mine"]
