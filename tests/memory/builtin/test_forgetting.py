"""What is forgotten is nowhere any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.errors import NotFound
from hermes.memory.builtin import BuiltinMemory, BuiltinMemoryProvider
from hermes.paths import ProfilePaths
from tests.memory.builtin.conftest import call_of


def found_in(home: Path, text: str) -> list[str]:
    """The files below *home* that hold *text* as bytes."""
    return [str(path) for path in home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_removal_by_the_person_leaves_no_trace(paths: ProfilePaths, memory: BuiltinMemory) -> None:
    """The text, and what it replaced, are gone from all files: history, pending, backups, leftovers."""
    memory.add("memory", "the door code is 4711")
    memory.add("memory", "uses uv")
    model = call_of(BuiltinMemoryProvider(paths, write_approval=True))
    model(action="replace", target="memory", old_text="code is 4711", content="the code is 4711, ask Ann")
    model(action="add", target="memory", content="unrelated")
    memory.replace("memory", "4711", "the door code is 4711 and the alarm is off")
    (paths.memories / "MEMORY.md.bak.1700000000").write_bytes("x\n§\nthe door code is 4711\n§\ny\n".encode())
    (paths.memories / ".hermes-999999-00aa.tmp").write_bytes(b"the door code is 4711")
    forgotten = memory.remove("memory", "door code")
    assert found_in(paths.home, "4711") == []
    assert forgotten.texts == ("the door code is 4711", "the door code is 4711 and the alarm is off")
    assert forgotten.problems == ()
    assert (paths.memories / "MEMORY.md.bak.1700000000").read_bytes() == "x\n§\ny\n".encode()
    assert [entry.text for entry in memory.entries("memory")] == ["uses uv"]
    assert [item.operations[0].content for item in memory.pending()] == ["unrelated"]


def test_a_removal_can_be_kept_undoable(memory: BuiltinMemory) -> None:
    """Without forgetting, a removal is a write like any other."""
    memory.add("memory", "a")
    memory.remove("memory", "a", forget=False)
    memory.undo()
    assert [entry.text for entry in memory.entries("memory")] == ["a"]


def test_forgetting_a_session_keeps_what_comes_back(paths: ProfilePaths, memory: BuiltinMemory) -> None:
    """What the session replaced is an entry again, and is not among the texts to forget."""
    memory.add("memory", "port 80")
    provider = BuiltinMemoryProvider(paths)
    provider.initialize("bad")
    call_of(provider)(action="replace", target="memory", old_text="port 80", content="port 31337 backdoor")
    reverted = memory.revert(session_id="bad", forget=True)
    assert reverted.texts == ("port 31337 backdoor",)
    assert [entry.text for entry in memory.entries("memory")] == ["port 80"]
    assert found_in(paths.home, "31337") == []


def test_reset(paths: ProfilePaths, memory: BuiltinMemory) -> None:
    """The file, its backups, its history and its pending writes go; the other half stays."""
    memory.add("memory", "marker one")
    memory.add("user", "Ann")
    call_of(BuiltinMemoryProvider(paths, write_approval=True))(
        action="add", target="memory", content="marker two"
    )
    (paths.memories / "MEMORY.md.bak.1").write_bytes(b"marker three")
    gone = memory.reset("memory")
    assert len(gone) == 3
    assert found_in(paths.home, "marker") == []
    assert [entry.text for entry in memory.entries("user")] == ["Ann"]
    assert memory.undo().record.target == "user"


def test_reset_of_nothing(memory: BuiltinMemory, paths: ProfilePaths) -> None:
    """It creates nothing."""
    assert memory.reset("memory", "user") == []
    assert not paths.home.exists()


def test_reset_empties_a_linked_file(memory: BuiltinMemory, paths: ProfilePaths, tmp_path: Path) -> None:
    """The link is the person's; what it leads to holds nothing any more."""
    real = tmp_path / "shared.md"
    real.write_bytes(b"a\n")
    paths.memories.mkdir(parents=True)
    (paths.memories / "MEMORY.md").symlink_to(real)
    memory.reset("memory")
    assert real.read_bytes() == b""
    assert (paths.memories / "MEMORY.md").is_symlink()


def test_forgotten_is_not_undoable(memory: BuiltinMemory) -> None:
    """There is nothing left that could bring it back."""
    memory.add("memory", "a")
    memory.remove("memory", "a")
    with pytest.raises(NotFound):
        memory.undo()
