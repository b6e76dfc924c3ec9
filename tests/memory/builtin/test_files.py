"""Files that people, editors, containers and full disks have been at."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.errors import StoreUnavailable
from hermes.memory.builtin import BuiltinMemory, BuiltinMemoryProvider
from hermes.paths import ProfilePaths
from tests.memory.builtin.conftest import Call, call_of
from tests.support import give_to_nobody, python, unprivileged

Write = Callable[[bytes], Path]


def leftovers(folder: Path) -> list[str]:
    """Temporary files and copies beside the memory files."""
    known = {"MEMORY.md", "USER.md", ".history.jsonl"}
    return [path.name for path in folder.iterdir() if path.name not in known and path.suffix != ".lock"]


def test_a_hand_edited_file_needs_no_backup(file: Write, call: Call) -> None:
    """Heading, comment and blank lines stay through a removal, and no copy is left, ever."""
    path = file("# Mine\n<!-- note -->\none\n§\n\ntwo\n§\nthree\n".encode())
    assert call(action="remove", target="memory", old_text="two")["success"]
    assert path.read_bytes() == "# Mine\n<!-- note -->\none\n§\nthree\n".encode()
    call(action="remove", target="memory", old_text="two")
    assert leftovers(path.parent) == []


def test_what_was_added_by_hand_meanwhile_stays(call: Call, paths: ProfilePaths) -> None:
    """A replacement from a session with an older view loses nothing of what the file has grown by."""
    call(action="add", target="memory", content="old entry")
    path = paths.memories / "MEMORY.md"
    prose = "Long prose. " * 300
    path.write_text(path.read_text(encoding="utf-8") + "\n\n" + prose, encoding="utf-8")
    reply = call(action="replace", target="memory", old_text="old entry", content="new entry")
    held = path.read_text(encoding="utf-8") + str(reply)
    assert prose.strip() in held


def test_invalid_bytes_are_kept_and_told(file: Write, call: Call, memory: BuiltinMemory) -> None:
    """One legacy byte stops nothing: it stays, is shown as U+FFFD, and the person is told where it is."""
    path = file(b"likes caf\xe9\n")
    reply = call(action="add", target="memory", content="new")
    assert [entry["text"] for entry in reply["entries"]] == ["likes caf\ufffd", "new"]
    assert b"likes caf\xe9" in path.read_bytes()
    (warning,) = memory.warnings()
    assert "byte 0xe9 in line 1 is not UTF-8" in warning
    assert call(action="replace", target="memory", old_text="likes", content="likes tea")["success"]
    memory.undo()
    assert b"likes caf\xe9" in path.read_bytes()


def test_utf16_is_refused_and_not_mangled(file: Write, call: Call, provider: BuiltinMemoryProvider) -> None:
    """A file in an encoding without plain separators is left alone, and the person is told what to do."""
    path = file("a\n".encode("utf-16"))
    reply = call(action="add", target="memory", content="b")
    assert "UTF-16" in reply["error"]
    assert path.read_bytes() == "a\n".encode("utf-16")
    provider.on_session_switch("s2")
    assert "could not be read" in provider.system_prompt_block()


def test_mode_and_link_are_kept(paths: ProfilePaths, memory: BuiltinMemory, tmp_path: Path) -> None:
    """A file that a group may read stays so, and a link leads to the same file after a write."""
    real = tmp_path / "shared.md"
    real.write_bytes(b"a\n")
    real.chmod(0o640)
    paths.memories.mkdir(parents=True)
    (paths.memories / "MEMORY.md").symlink_to(real)
    memory.add("memory", "b")
    assert (paths.memories / "MEMORY.md").is_symlink()
    assert real.read_bytes() == "a\n§\nb\n".encode()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_new_files_are_private(memory: BuiltinMemory, paths: ProfilePaths) -> None:
    """Nobody else can read what we make."""
    memory.add("memory", "a")
    assert stat.S_IMODE(paths.memories.stat().st_mode) == 0o700
    for name in ("MEMORY.md", ".history.jsonl"):
        assert stat.S_IMODE((paths.memories / name).stat().st_mode) == 0o600


def test_a_file_that_cannot_be_read_is_not_empty(paths: ProfilePaths, file: Write) -> None:
    """Block, tool, list and status name the path and its owner; nothing is written over it."""
    path = file(b"precious\n")
    path.chmod(0)
    paths.home.parent.chmod(0o755)
    for folder in list(paths.home.parents)[:4]:
        folder.chmod(folder.stat().st_mode | 0o011)
    give_to_nobody(paths.home)

    def check() -> None:
        provider = BuiltinMemoryProvider(paths)
        provider.initialize("s1")
        for said in (
            provider.system_prompt_block(),
            call_of(provider)(action="add", target="memory", content="b")["error"],
            provider.memory.usage()[0].problem,
            provider.memory.warnings()[0],
        ):
            assert str(path) in said
            assert "belongs to nobody, mode 0000" in said
        with pytest.raises(StoreUnavailable):
            provider.memory.entries("memory")

    unprivileged(check)
    path.chmod(0o600)
    assert path.read_bytes() == b"precious\n"


def test_a_folder_that_cannot_be_written(paths: ProfilePaths, file: Write) -> None:
    """The tool answers in JSON, and the file is as it was."""
    path = file(b"a\n")
    give_to_nobody(paths.home)
    for folder in list(paths.home.parents)[:4]:
        folder.chmod(folder.stat().st_mode | 0o011)
    paths.memories.chmod(0o500)

    def check() -> None:
        reply = call_of(BuiltinMemoryProvider(paths))(action="add", target="memory", content="b")
        assert not reply["success"]
        assert str(paths.memories) in reply["error"]

    unprivileged(check)
    assert path.read_bytes() == b"a\n"


def test_a_full_disk(call: Call, paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC is an answer in JSON; file, history and live state are as they were; nothing is left behind."""
    call(action="add", target="memory", content="a")
    history = (paths.memories / ".history.jsonl").read_bytes()

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        reply = call(action="add", target="memory", content="ghost")
    assert "No space left on device" in reply["error"]
    assert [entry["text"] for entry in reply["entries"]] == ["a"]
    assert (paths.memories / "MEMORY.md").read_bytes() == b"a\n"
    assert (paths.memories / ".history.jsonl").read_bytes() == history
    assert leftovers(paths.memories) == []
    assert call(action="add", target="memory", content="b")["success"]


def test_a_removal_that_failed_may_be_tried_again(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that did not happen is no step of a circle."""
    call(action="add", target="memory", content="a")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *args: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
        assert not call(action="remove", target="memory", old_text="a")["success"]
    assert call(action="remove", target="memory", old_text="a")["success"]


def test_a_size_limit(paths: ProfilePaths, memory: BuiltinMemory) -> None:
    """A file that may grow no further is left as it was."""
    memory.add("memory", "a" * 200)
    before = (paths.memories / "MEMORY.md").read_bytes()
    program = (
        "import resource, sys; from pathlib import Path; from hermes.paths import ProfilePaths\n"
        "from hermes.memory.builtin import BuiltinMemoryProvider\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300)); home = Path(sys.argv[1])\n"
        "args = {'action': 'add', 'target': 'memory', 'content': 'b' * 200}\n"
        "print(BuiltinMemoryProvider(ProfilePaths(home, home)).handle_tool_call('memory', args))"
    )
    reply = json.loads(python("-c", program, str(paths.home)).stdout)
    assert not reply["success"]
    assert "File too large" in reply["error"]
    assert (paths.memories / "MEMORY.md").read_bytes() == before
    assert leftovers(paths.memories) == []


def test_a_bind_mount(call: Call, paths: ProfilePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file cannot be renamed over it is written in place."""
    call(action="add", target="memory", content="a")
    path = paths.memories / "MEMORY.md"
    inode = path.stat().st_ino
    real = Path.replace

    def busy(self: Path, target: Path) -> Path:
        if target == path:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", busy)
    assert call(action="add", target="memory", content="b")["success"]
    assert path.read_bytes() == "a\n§\nb\n".encode()
    assert path.stat().st_ino == inode
    assert leftovers(paths.memories) == []


def test_a_history_that_cannot_be_written_stops_no_write(call: Call, paths: ProfilePaths) -> None:
    """The write is made, and the answer says that it cannot be undone."""
    paths.memories.mkdir(parents=True)
    (paths.memories / ".history.jsonl").mkdir()
    reply = call(action="add", target="memory", content="a")
    assert reply["success"]
    assert "cannot be undone" in reply["warning"]
    assert (paths.memories / "MEMORY.md").read_bytes() == b"a\n"


def test_a_link_that_leads_nowhere(call: Call, paths: ProfilePaths, tmp_path: Path) -> None:
    """An unmounted folder is not an empty memory, and nothing is made in its place."""
    paths.memories.mkdir(parents=True)
    (paths.memories / "MEMORY.md").symlink_to(tmp_path / "unmounted" / "MEMORY.md")
    reply = call(action="add", target="memory", content="a")
    assert "does not exist" in reply["error"]
    assert not (tmp_path / "unmounted").exists()


def test_an_unreadable_history_hides_no_entry(memory: BuiltinMemory, paths: ProfilePaths) -> None:
    """The entries are listed without their origins, and the person is told."""
    memory.add("memory", "a")
    (paths.memories / ".history.jsonl").unlink()
    (paths.memories / ".history.jsonl").mkdir()
    assert [entry.text for entry in memory.entries("memory")] == ["a"]
    assert any(".history.jsonl" in warning for warning in memory.warnings())
