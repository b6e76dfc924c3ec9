"""Profiles are made, renamed and deleted whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes import files, profile_admin
from hermes.errors import (
    ConfigError,
    HermesError,
    HomeUnusable,
    InvalidProfileName,
    ProfileBusy,
    ProfileNotFound,
    StaleActiveProfile,
    StoreUnavailable,
    UsageError,
)
from hermes.holds import hold
from hermes.profile_admin import contents, create, delete, rename, use
from hermes.profiles import active_marker, list_profiles, named, resolve
from tests.support import give_to_nobody, unprivileged


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below *folder* but locks, with its content."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def modes(folder: Path) -> set[tuple[bool, int]]:
    """(is a folder, mode) of everything at and below *folder*."""
    return {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in [folder, *folder.rglob("*")]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root whose profile ``a`` holds something of everything, with loose modes."""
    home = tmp_path / "root" / "profiles" / "a"
    for name, content in {
        "config.yaml": f"# x\nmemory:\n  provider: mine\n  api_key: hunter2\n  db: {home}/mine/memory.db\n",
        "config.local.yaml": "display: {}\n",
        ".env": f"KEY=hunter2\nDB={home}/x.db\n",
        "auth.json": '{"token": "hunter2"}',
        "honcho.json": json.dumps({"apiKey": "hunter2", "path": f"{home}/h"}),
        "hindsight/config.json": json.dumps({"bank_id": "b", "llm": {"api_key": "hunter2"}}),
        "hindsight/data.db": "database",
        "mine/config.json": '{"mode": "x"}',
        "mine.json": '{"mode": "y"}',
        "memories/MEMORY.md": "Likes tea.\n§\nTwo.",
        "memories/USER.md": "Ada.",
        "memories/.history.json": "{}",
        "memories/.MEMORY.md.lock": "",
        "journal.db": "database",
        "sessions.db": "database",
        "pending/memory/1.json": "{}",
        "logs/hermes.log": "log",
        "plugins/mine/plugin.yaml": "name: mine",
        "google_token.json": '{"token": "hunter2"}',
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o644)
    return tmp_path / "root"


SETTINGS = {
    "config.yaml", "config.local.yaml", "honcho.json", "hindsight/config.json", "mine/config.json",
    "mine.json",
}  # fmt: skip
MEMORY = {"memories/MEMORY.md", "memories/USER.md"}


def test_new_profile(tmp_path: Path) -> None:
    """A new profile has the provider ``local`` in its settings, and is private from the root down."""
    before = os.umask(0o022)
    try:
        made = create(tmp_path / "root", "work")
    finally:
        os.umask(before)
    assert made.profile.home == tmp_path / "root" / "profiles" / "work"
    assert list(tree(made.profile.home)) == ["config.yaml"]
    assert yaml.safe_load(made.profile.paths.config.read_text()) == {"memory": {"provider": "local"}}
    assert modes(tmp_path / "root") == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("name", ["", "Work", "../x", "x" * 200, "con", "default", "profiles", "a/b"])
def test_bad_names_touch_nothing(tmp_path: Path, name: str) -> None:
    """A bad name is refused by every command before any path is touched."""
    calls: list[Callable[[], Any]] = [
        lambda: create(tmp_path, name),
        lambda: create(tmp_path, "good", clone_from=name if name != "default" else "Work"),
        lambda: rename(tmp_path, name, "good"),
        lambda: rename(tmp_path, "good", name),
        lambda: delete(tmp_path, name),
        lambda: use(tmp_path, name if name != "default" else "Work"),
    ]
    for call in calls:
        with pytest.raises(InvalidProfileName):
            call()
    assert list(tmp_path.iterdir()) == []


def test_existing_profile_is_not_made_again(root: Path) -> None:
    """A profile that is there stays as it is; so does a file or a dead link in its place."""
    before = tree(root)
    (root / "profiles" / "link").symlink_to("nowhere")
    for name in ("a", "link"):
        with pytest.raises(UsageError, match="already"):
            create(root, name)
    assert tree(root) == before


def test_clone_without_secrets(root: Path) -> None:
    """A clone has settings, memory and providers' files, with no secret and no path into the source."""
    before = tree(root)
    made = create(root, "b", clone_from="a")
    copy = tree(made.profile.home)
    assert set(copy) == set(made.copied) == SETTINGS | MEMORY
    assert not [name for name, content in copy.items() if b"hunter2" in content or b"profiles/a" in content]
    assert copy["memories/MEMORY.md"] == before["profiles/a/memories/MEMORY.md"]
    assert yaml.safe_load(copy["config.yaml"]) == {
        "memory": {"provider": "mine", "api_key": "", "db": f"{made.profile.home}/mine/memory.db"}
    }
    assert json.loads(copy["honcho.json"]) == {"path": f"{made.profile.home}/h"}
    assert made.removed == (
        "config.yaml: memory.api_key", "hindsight/config.json: llm.api_key", "honcho.json: apiKey"
    )  # fmt: skip
    assert made.rewritten == ("config.yaml", "honcho.json")
    assert made.left_out == (
        ".env", "auth.json", "google_token.json", "journal.db", "logs/", "pending/", "plugins/", "sessions.db"
    )  # fmt: skip
    assert modes(made.profile.home) == {(True, 0o700), (False, 0o600)}
    assert {
        name: content for name, content in tree(root).items() if not name.startswith("profiles/b/")
    } == before


def test_clone_with_secrets(root: Path) -> None:
    """With secrets they come along, private, and their paths follow as well."""
    made = create(root, "b", clone_from="a", with_secrets=True)
    copy = tree(made.profile.home)
    assert set(copy) == SETTINGS | MEMORY | {".env", "auth.json"}
    assert copy[".env"].decode() == f"KEY=hunter2\nDB={made.profile.home}/x.db\n"
    assert json.loads(copy["honcho.json"])["apiKey"] == "hunter2"
    assert made.removed == ()
    assert modes(made.profile.home) == {(True, 0o700), (False, 0o600)}


def test_clone_without_memory(root: Path) -> None:
    """Memory files can be left out, and are then named among what was."""
    made = create(root, "b", clone_from="a", with_memory=False)
    assert set(tree(made.profile.home)) == SETTINGS
    assert "memories/" in made.left_out


def test_clone_of_the_default_profile(tmp_path: Path) -> None:
    """The profile at the root is cloned without the other profiles and what all share."""
    (tmp_path / "common.yaml").write_text("x: 1\n")
    (tmp_path / "config.yaml").write_text(f"memory:\n  provider: mem0\n  db: {tmp_path}/x.db\n")
    create(tmp_path, "a")
    made = create(tmp_path, "b", clone_from="default")
    assert (
        yaml.safe_load(made.profile.paths.config.read_text())["memory"]["db"] == f"{made.profile.home}/x.db"
    )
    assert (made.copied, made.left_out) == (("config.yaml",), ())
    assert "local" in create(tmp_path, "c", clone_from="a").profile.paths.config.read_text()


def test_clone_of_a_profile_without_settings(tmp_path: Path) -> None:
    """No settings file means the provider local; the clone says it."""
    made = create(tmp_path, "b", clone_from="default")
    assert yaml.safe_load(made.profile.paths.config.read_text()) == {"memory": {"provider": "local"}}
    with pytest.raises(ProfileNotFound):
        create(tmp_path, "c", clone_from="gone")


def test_clone_copies_what_links_lead_to(root: Path, tmp_path: Path) -> None:
    """A linked memory file becomes a file of the clone's own: the two never share one."""
    notes = tmp_path / "notes.md"
    notes.write_text("Shared.")
    (root / "profiles" / "a" / "memories" / "MEMORY.md").unlink()
    (root / "profiles" / "a" / "memories" / "MEMORY.md").symlink_to(notes)
    made = create(root, "b", clone_from="a")
    copied = made.profile.paths.memories / "MEMORY.md"
    assert not copied.is_symlink()
    assert copied.read_text() == "Shared."


@pytest.mark.parametrize("name", ["config.yaml", "honcho.json"])
def test_clone_of_a_broken_file_makes_nothing(root: Path, name: str) -> None:
    """A settings file that cannot be read is named, and no profile is made."""
    (root / "profiles" / "a" / name).write_text("{ broken: [")
    before = tree(root)
    with pytest.raises(ConfigError, match=name):
        create(root, "b", clone_from="a")
    assert tree(root) == before
    assert [p.name for p in list_profiles(root)] == ["default", "a"]


def test_provider_name_is_no_path(root: Path) -> None:
    """A provider called after a path makes no file outside the home be read."""
    (root / "profiles" / "a" / "config.yaml").write_text("memory: {provider: ../secret}\n")
    (root / "profiles" / "secret.json").write_text("{}")
    assert "../secret.json" not in create(root, "b", clone_from="a").copied


@pytest.mark.parametrize("broken", ["fsync", "rename"])
def test_create_that_fails_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """A full disk in the middle leaves no half-made profile."""

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = tree(root)
    with monkeypatch.context() as patch:
        patch.setattr(os if broken == "fsync" else Path, broken, full)
        with pytest.raises(HomeUnusable, match="No space"):
            create(root, "b", clone_from="a")
    assert tree(root) == before
    assert [path.name for path in (root / "profiles").iterdir()] == ["a"]


def test_create_that_is_killed_leaves_no_profile(root: Path) -> None:
    """A process killed in the middle leaves nothing that is taken for a profile; the next one cleans up."""
    code = (
        "import os, signal, sys; from pathlib import Path; from hermes import profile_admin\n"
        "Path.rename = lambda *args: os.kill(os.getpid(), signal.SIGKILL)\n"
        "profile_admin.create(Path(sys.argv[1]), 'b', clone_from='a')"
    )
    done = subprocess.run([sys.executable, "-c", code, root], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [p.name for p in list_profiles(root)] == ["default", "a"]
    assert len(list((root / "profiles").iterdir())) == 2
    create(root, "b")
    assert {path.name for path in (root / "profiles").iterdir()} == {"a", "b"}


def test_create_at_once(tmp_path: Path) -> None:
    """Of eight that make the same profile one does, the others are told; different ones are all made."""

    def attempt(name: str) -> bool:
        try:
            create(tmp_path, name)
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, ["same"] * 8)) == 1
        assert sum(pool.map(attempt, [f"p{n}" for n in range(8)])) == 8


def test_root_that_cannot_be_written(reachable: Path) -> None:
    """Without permission every command says so, and what is there stays."""
    (reachable / "profiles" / "a").mkdir(parents=True)
    give_to_nobody(reachable)

    def act() -> None:
        reachable.chmod(0o555)
        for call in (
            lambda: create(reachable, "b"),
            lambda: delete(reachable, "a"),
            lambda: use(reachable, "a"),
        ):
            with pytest.raises(HomeUnusable, match="Permission denied"):
                call()
        reachable.chmod(0o755)

    unprivileged(act)
    assert [p.name for p in list_profiles(reachable)] == ["default", "a"]


def test_source_that_cannot_be_read(reachable: Path) -> None:
    """A memory file that cannot be read is not left out in silence."""
    create(reachable, "a")
    (reachable / "profiles" / "a" / "memories").mkdir()
    (reachable / "profiles" / "a" / "memories" / "USER.md").write_text("x")
    (reachable / "profiles" / "a" / "memories" / "USER.md").chmod(0)
    give_to_nobody(reachable)

    def act() -> None:
        with pytest.raises(StoreUnavailable, match=r"USER\.md"):
            create(reachable, "b", clone_from="a")

    unprivileged(act)
    assert [p.name for p in list_profiles(reachable)] == ["default", "a"]


def test_use(root: Path) -> None:
    """The choice is kept in active_profile; default clears it; a profile that is not there is refused."""
    environ = {"HERMES_HOME": str(root)}
    use(root, "a")
    assert resolve(environ).name == "a"
    with pytest.raises(ProfileNotFound):
        use(root, "gone")
    assert resolve(environ).name == "a"
    use(root, "default")
    assert not active_marker(root).exists()
    assert use(root.parent / "new", "default").home == root.parent / "new"
    assert not (root.parent / "new").exists()


def test_rename(root: Path) -> None:
    """All comes along; active_profile and paths in the settings follow."""
    use(root, "a")
    before = tree(root / "profiles" / "a")
    done = rename(root, "a", "job")
    assert [p.name for p in list_profiles(root)] == ["default", "job"]
    assert resolve({"HERMES_HOME": str(root)}).name == "job"
    assert (done.rewritten, done.was_active) == ((".env", "config.yaml", "honcho.json"), True)
    after = tree(done.profile.home)
    assert set(after) == set(before)
    assert not [name for name, content in after.items() if b"profiles/a" in content]
    assert after["config.yaml"] == before["config.yaml"].replace(b"profiles/a", b"profiles/job")
    assert stat.S_IMODE((done.profile.home / "config.yaml").stat().st_mode) == 0o644


def test_rename_leaves_another_choice_alone(root: Path) -> None:
    """active_profile is only touched if it names the profile; a stale one does not matter."""
    active_marker(root).write_text("gone\n")
    rename(root, "a", "job")
    with pytest.raises(StaleActiveProfile):
        resolve({"HERMES_HOME": str(root)})
    create(root, "b")
    with pytest.raises(UsageError, match="already"):
        rename(root, "b", "job")


@pytest.mark.parametrize("nth", range(4))
def test_rename_that_fails_is_undone(root: Path, monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
    """Whatever step fails, the profile is as it was, under its old name, and still the chosen one."""
    use(root, "a")
    before = tree(root)
    real = files.write_atomic
    calls: list[Path] = []

    def failing(path: Path, data: bytes) -> None:
        calls.append(path)
        if len(calls) == nth + 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(profile_admin, "write_atomic", failing)
        with pytest.raises(HomeUnusable, match="No space"):
            rename(root, "a", "job")
    assert tree(root) == before
    assert resolve({"HERMES_HOME": str(root)}).name == "a"


def test_delete_and_undo(root: Path) -> None:
    """A deleted profile lies in the trash, and the command that is shown brings it back."""
    use(root, "a")
    before = tree(root / "profiles" / "a")
    done = delete(root, "a")
    assert done.trash.parent == root / "trash"
    assert done.trash.name.startswith("a-")
    assert tree(done.trash) == before
    assert stat.S_IMODE((root / "trash").stat().st_mode) == 0o700
    assert [p.name for p in list_profiles(root)] == ["default"]
    assert (done.was_active, resolve({"HERMES_HOME": str(root)}).name) == (True, "default")
    subprocess.run(done.undo, shell=True, check=True)
    assert tree(named(root, "a").home) == before


def test_delete_twice_in_a_second(root: Path) -> None:
    """Two of the same name in the trash never meet."""
    places = []
    for _ in range(3):
        places.append(delete(root, "a").trash)
        create(root, "a")
    assert len(set(places)) == 3
    assert all(place.is_dir() for place in places)


def test_undo_is_quoted(tmp_path: Path) -> None:
    """A root with a space and a quote in its path still gives a command that works."""
    root = tmp_path / "it's mine"
    create(root, "a")
    done = delete(root, "a")
    assert shlex.split(done.undo) == ["mv", str(done.trash), str(done.home)]
    subprocess.run(done.undo, shell=True, check=True)
    assert named(root, "a").home.is_dir()


def test_delete_that_fails_is_undone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the choice cannot be cleared, the profile goes back to its place."""
    use(root, "a")

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    before = tree(root)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(HomeUnusable, match="not permitted"):
            delete(root, "a")
    assert tree(root) == before


def test_trash_on_another_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that cannot be moved in one step is left where it is."""

    def refuse(self: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(HomeUnusable, match="cannot be moved"):
            delete(root, "a")
    assert named(root, "a").home.is_dir()


def test_held_profile_is_neither_deleted_nor_renamed(root: Path) -> None:
    """While a process holds a profile it stays; after that it goes."""
    with hold(named(root, "a").paths):
        for call in (lambda: delete(root, "a"), lambda: rename(root, "a", "b")):
            with pytest.raises(ProfileBusy) as caught:
                call()
            assert caught.value.holders == (os.getpid(),)
    delete(root, "a")


def test_contents(root: Path) -> None:
    """What lies in a home is counted without locks, and for the default profile without the others."""
    inside = contents(named(root, "a"))
    assert inside.files == 18
    assert inside.names[:3] == (".env", "auth.json", "config.local.yaml")
    assert "hindsight/" in inside.names
    assert contents(named(root, "default")).files == 0


def test_errors_have_a_next_step(root: Path) -> None:
    """Each error says what to do."""
    calls: list[Callable[[], Any]] = [
        lambda: create(root, "a"),
        lambda: create(root, "A"),
        lambda: delete(root, "gone"),
        lambda: rename(root, "default", "x"),
    ]
    for call in calls:
        with pytest.raises(HermesError) as caught:
            call()
        assert caught.value.next_step
