"""``hermes profile``, run as a person runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.profile_admin import create
from tests.support import hermes


def run(home: Path, *args: str, code: int = 0, env: dict[str, str] | None = None) -> tuple[str, str]:
    """Standard output and error of ``hermes profile ARGS``, which must end with *code*."""
    done = hermes("profile", *args, home=home, env=env)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def data(home: Path, *args: str, env: dict[str, str] | None = None) -> Any:
    """What it prints with ``--json``."""
    return json.loads(run(home, *args, "--json", env=env)[0])


def at_terminal(home: Path, answer: str, *args: str) -> tuple[int, str]:
    """Exit code and output of ``hermes profile ARGS`` at a terminal where *answer* is typed."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes", "profile", *args],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "HERMES_HOME": str(home)},
        text=True,
    )
    os.write(ours, answer.encode())
    output, _ = child.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    return child.returncode, output


def test_life_of_a_profile(home: Path) -> None:
    """Made, chosen, shown, renamed, deleted and taken back."""
    out, _ = run(home, "create", "work")
    work = home / "profiles" / "work"
    assert out == f"profile work is made ({work})\nnext: hermes -p work memory status\n"
    assert run(home, "use", "work")[0] == f"using profile work ({work})\n"
    assert run(home, "list")[0] == f"  default  {home}\n* work     {work}\n"
    assert f"home       {work}\nchosen by  active_profile\n" in run(home, "show")[0]
    job = home / "profiles" / "job"
    assert run(home, "rename", "work", "job", "--yes")[0] == f"profile work is now job ({job})\n"
    lines = run(home, "delete", "job", "--yes")[0].splitlines()
    assert lines[0].startswith(f"profile job is in the trash ({home / 'trash' / 'job-'}")
    assert lines[2] == "it was the profile in use: now that is default"
    subprocess.run(lines[1].removeprefix("to take it back: "), shell=True, check=True)
    assert [row["name"] for row in data(home, "list")["profiles"]] == ["default", "job"]


def test_looking_makes_nothing(home: Path) -> None:
    """list and show make no folder."""
    assert data(home, "list")["profiles"][0]["exists"] is False
    run(home, "show")
    run(home, "show", "work", code=3)
    assert not home.exists()


def test_shape_of_json(home: Path) -> None:
    """The documented keys are there."""
    facts = {"name", "home", "exists"}
    made = data(home, "create", "a")
    assert set(made) == facts | {"cloned_from", "copied", "paths_rewritten", "secrets_removed", "left_out"}
    assert set(data(home, "use", "a")) == facts | {"active_profile"}
    listed = data(home, "list")
    assert set(listed) == {"root", "current", "active_profile", "profiles", "warning"}
    assert set(listed["profiles"][0]) == facts | {"current", "active"}
    assert set(data(home, "show")) == facts | {"root", "chosen_by", "active", "held_by", "files", "bytes"}
    renamed = data(home, "rename", "a", "b", "--yes")
    assert set(renamed) == facts | {"old_name", "paths_rewritten", "active"}
    deleted = data(home, "delete", "b", "--yes")
    assert set(deleted) == {"name", "home", "trash", "undo", "active_profile_reset"}


def test_clone(home: Path) -> None:
    """What was copied, taken out and left out is printed; --clone means the current profile."""
    run(home, "create", "a")
    source = home / "profiles" / "a"
    (source / "memories").mkdir()
    (source / "memories" / "USER.md").write_text("Ada.")
    (source / ".env").write_text("KEY=hunter2\n")
    (source / "mem0.json").write_text('{"apiKey": "hunter2", "mode": "x"}')
    out, _ = run(home, "create", "b", "--clone", env={"HERMES_PROFILE": "a"})
    assert "copied: config.yaml, mem0.json, memories/USER.md\n" in out
    assert "secrets taken out: mem0.json: apiKey\n" in out
    assert "left out: .env\n" in out
    assert "hunter2" not in out
    made = data(home, "create", "c", "--clone-from", "a", "--with-secrets", "--no-memory")
    assert made["copied"] == [".env", "config.yaml", "mem0.json"]
    assert (home / "profiles" / "c" / ".env").stat().st_mode & 0o777 == 0o600


def test_clone_that_is_refused(home: Path) -> None:
    """A file that cannot be taken over safely ends with 78, its name and its line."""
    create(home, "a")
    (home / "profiles" / "a" / "config.yaml").write_text("memory:\n\tprovider: x\n")
    _, err = run(home, "create", "b", "--clone-from", "a", code=78)
    assert f"{home}/profiles/a/config.yaml:2" in err
    run(home, "show", "b", code=3)


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["create", "Work"], 2, "did you mean 'work'?"),
        (["create", "../x"], 2, "path"),
        (["create", ""], 2, "empty"),
        (["create", "x" * 200], 2, "200 characters"),
        (["create", "con"], 2, "reserved"),
        (["create", "default"], 2, "always there"),
        (["create", "a"], 2, "already"),
        (["create"], 2, "Missing argument"),
        (["create", "b", "--clone", "--clone-from", "a"], 2, "exclude each other"),
        (["create", "b", "--with-secrets"], 2, "--clone"),
        (["create", "b", "--no-memory"], 2, "--clone"),
        (["create", "b", "--clone-from", "gone"], 3, "no profile 'gone'"),
        (["use", "aa"], 3, "did you mean 'a'?"),
        (["show", "gone"], 3, "no profile 'gone'"),
        (["rename", "gone", "b", "--yes"], 3, "no profile 'gone'"),
        (["rename", "a", "Bee", "--yes"], 2, "capital"),
        (["rename", "default", "b", "--yes"], 2, "always there"),
        (["delete", "default", "--yes"], 2, "always there"),
        (["delete", "gone", "--yes"], 3, "no profile 'gone'"),
        (["delete", "a"], 2, "--yes"),
        (["rename", "a", "b"], 2, "--yes"),
        (["list", "-p", "gone"], 3, "no profile 'gone'"),
    ],
)
def test_errors(home: Path, args: list[str], code: int, says: str) -> None:
    """Each ends with its exit code and one line that says what to do; nothing changes."""
    create(home, "a")
    before = sorted(home.rglob("*"))
    out, err = run(home, *args, code=code)
    assert (out, len(err.splitlines())) == ("", 1)
    assert says in err
    assert sorted(home.rglob("*")) == before


def test_questions_at_a_terminal(home: Path) -> None:
    """At a terminal delete and rename ask, naming what goes; anything but yes changes nothing."""
    create(home, "a")
    code, output = at_terminal(home, "n\n", "delete", "a")
    assert (code, f"Delete profile a ({home}/profiles/a, 1 file, 1 KiB, config.yaml)? [y/N]" in output) == (
        1,
        True,
    )
    assert at_terminal(home, "\n", "rename", "a", "b")[0] == 1
    assert (home / "profiles" / "a").is_dir()
    assert at_terminal(home, "y\n", "rename", "a", "b")[0] == 0
    assert at_terminal(home, "yes\n", "delete", "b")[0] == 0
    assert not (home / "profiles" / "b").exists()


def test_stale_choice_bricks_nothing(home: Path) -> None:
    """With a stale active_profile these commands work, with a warning that says how to mend it."""
    create(home, "a")
    (home / "active_profile").write_text("gone\n")
    out, err = run(home, "list")
    assert "*" not in out
    assert "'gone' no longer exists" in err
    assert "hermes profile use default" in err
    shown = data(home, "show")
    assert (shown["name"], shown["active_profile"]) == (None, "gone")
    assert "hermes profile use" in shown["warning"]
    run(home, "create", "b")
    run(home, "create", "c", "--clone", code=3)
    run(home, "rename", "b", "c", "--yes")
    run(home, "delete", "c", "--yes")
    assert run(home, "show", "a")[1] == ""
    assert "gone" in (home / "active_profile").read_text()
    run(home, "use", "default")
    assert data(home, "list")["current"] == "default"


def test_use_that_has_no_effect_here_says_so(home: Path) -> None:
    """Where a variable chooses another profile the choice is kept, and that is said."""
    create(home, "a")
    create(home, "b")
    _, err = run(home, "use", "a", env={"HERMES_PROFILE": "b"})
    assert err == "here HERMES_PROFILE still chooses b\n"
    assert data(home, "list")["current"] == "a"


def test_home_inside_profiles(home: Path) -> None:
    """From within a profile's own home the commands act on the same root."""
    create(home, "a")
    listed = data(home / "profiles" / "a", "list")
    assert (listed["root"], listed["current"]) == (str(home), "a")


def test_held_profile(home: Path) -> None:
    """A profile that another process holds is not deleted: exit 4, with its process."""
    create(home, "a")
    code = (
        "import sys; from pathlib import Path\n"
        "from hermes.holds import hold; from hermes.profiles import named\n"
        "with hold(named(Path(sys.argv[1]), 'a').paths): print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        _, err = run(home, "delete", "a", "--yes", code=4)
        assert f"process {child.pid}" in err
        assert data(home, "show", "a")["held_by"] == [child.pid]
        child.communicate()
    run(home, "delete", "a", "--yes")


def test_home_that_is_a_file(tmp_path: Path) -> None:
    """A file in the place of the home: exit 4 and its name."""
    (tmp_path / "file").touch()
    for args in (["list"], ["show"], ["create", "a"], ["use", "default"]):
        assert str(tmp_path / "file") in run(tmp_path / "file", *args, code=4)[1]
