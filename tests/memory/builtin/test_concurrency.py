"""Many writers at once lose nothing, and what was acknowledged is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from hermes.memory.builtin import BuiltinMemory, BuiltinMemoryProvider, Limits
from hermes.paths import ProfilePaths
from tests.memory.builtin.conftest import call_of

WRITER = """
import sys
from pathlib import Path
from hermes.memory.builtin import BuiltinMemory, Limits
from hermes.paths import ProfilePaths
home = Path(sys.argv[1])
memory = BuiltinMemory(ProfilePaths(home, home), limits=Limits(memory=10**6))
sys.stdin.read()
"""


def run(home: Path, *programs: str) -> None:
    """Start one process per program, let them go at the same moment, and wait for all."""
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER + program, str(home), str(i)], stdin=subprocess.PIPE)
        for i, program in enumerate(programs)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait(60) for process in started] == [0] * len(started)


def texts(paths: ProfilePaths) -> list[str]:
    """The entries of MEMORY.md."""
    return [entry.text for entry in BuiltinMemory(paths).entries("memory")]


def test_eight_processes_add(paths: ProfilePaths) -> None:
    """8 processes with 25 additions each give 200 entries, and 200 records."""
    program = "for n in range(25): memory.add('memory', f'writer {sys.argv[2]} entry {n}.')"
    run(paths.home, *[program] * 8)
    assert sorted(texts(paths)) == sorted(f"writer {w} entry {n}." for w in range(8) for n in range(25))
    assert len(BuiltinMemory(paths).history()) == 200


def test_three_processes_mix_writes(paths: ProfilePaths) -> None:
    """Additions, replacements and removals of three processes all take effect."""
    start = BuiltinMemory(paths, limits=Limits(memory=10**6))
    for n in range(20):
        start.add("memory", f"old {n}.")
        start.add("memory", f"gone {n}.")
    run(
        paths.home,
        "for n in range(20): memory.add('memory', f'added {n}.')",
        "for n in range(20): memory.replace('memory', f'old {n}.', f'new {n}.')",
        "for n in range(20): memory.remove('memory', f'gone {n}.', forget=n % 2 == 0)",
    )
    assert sorted(texts(paths)) == sorted(f"{kind} {n}." for kind in ("added", "new") for n in range(20))


def test_a_person_and_the_tool_in_one_process(paths: ProfilePaths) -> None:
    """An edit by a person and a write of the tool in two threads, fifty times, lose nothing."""
    limits = Limits(memory=10**6)
    person = BuiltinMemory(paths, limits=limits)
    tool = call_of(BuiltinMemoryProvider(paths, limits=limits))
    barrier = threading.Barrier(2)

    def edit() -> None:
        barrier.wait()
        for n in range(50):
            person.add("memory", f"person {n}.")

    thread = threading.Thread(target=edit)
    thread.start()
    barrier.wait()
    replies = [tool(action="add", target="memory", content=f"tool {n}.") for n in range(50)]
    thread.join()
    assert all(reply["success"] for reply in replies)
    assert len(texts(paths)) == 100


def test_two_profiles_that_share_a_file(tmp_path: Path) -> None:
    """A link from two homes to one file has one lock."""
    real = tmp_path / "shared" / "MEMORY.md"
    real.parent.mkdir()
    real.write_bytes(b"")
    homes = [tmp_path / name for name in ("a", "b")]
    for home in homes:
        (home / "memories").mkdir(parents=True)
        (home / "memories" / "MEMORY.md").symlink_to(real)
    memories = [BuiltinMemory(ProfilePaths(home, home), limits=Limits(memory=10**6)) for home in homes]

    def add(memory: BuiltinMemory, name: str) -> None:
        for n in range(25):
            memory.add("memory", f"{name} {n}.")

    threads = [threading.Thread(target=add, args=pair) for pair in zip(memories, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memories[0].entries("memory")) == 50


def test_killed_writers_leave_a_whole_file(paths: ProfilePaths) -> None:
    """What a killed process had acknowledged is there, and the file has no half entry."""
    program = (
        "for n in range(10**6):\n"
        "    memory.add('memory', f'entry {n} ' + 'x' * 50)\n"
        "    print(n, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER + program, str(paths.home)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    for _ in range(30):
        process.stdout.readline()
    process.kill()
    acknowledged = 30 + sum(line.endswith("\n") for line in process.stdout)
    process.stdout.close()
    process.wait()
    found = texts(paths)
    assert found[:acknowledged] == [f"entry {n} " + "x" * 50 for n in range(acknowledged)]
    assert len(found) <= acknowledged + 1
