"""Which profile is meant, by every rule and its order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes import profiles
from hermes.errors import HomeUnusable, InvalidProfileName, ProfileNotFound, StaleActiveProfile
from hermes.profiles import check_name, check_new_name, find_root, list_profiles, named, resolve
from tests.support import give_to_nobody, unprivileged


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with the profiles home, work and play."""
    for name in ("home", "work", "play"):
        (tmp_path / "root" / "profiles" / name).mkdir(parents=True)
    return tmp_path / "root"


@pytest.mark.parametrize("name", ["a", "0", "work", "my-team_2", "a" * 64, "con2", "com", "default"])
def test_good_name(name: str) -> None:
    """Lower case letters, digits, - and _, up to 64."""
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason", "suggestion"),
    [
        ("", "empty", ""),
        ("Work", "capital", "work"),
        ("My Team", "must begin", "my-team"),
        ("A B", "must begin", "a-b"),
        ("a b", "only a-z", "a-b"),
        ("../x", "path", ""),
        ("..", "path", ""),
        ("a/b", "path", ""),
        ("a\\b", "path", ""),
        ("/etc", "path", ""),
        ("-x", "must begin", ""),
        ("_x", "must begin", ""),
        ("a" * 65, "65 characters", ""),
        ("a" * 200, "200 characters", ""),
        ("é", "must begin", ""),
        ("work\n", "only a-z", "work"),
        ("a\0b", "only a-z", ""),
        ("con", "reserved", ""),
        ("nul", "reserved", ""),
        ("com0", "reserved", ""),
        ("lpt9", "reserved", ""),
        ("profiles", "reserved", ""),
    ],
)
def test_bad_name(root: Path, name: str, reason: str, suggestion: str) -> None:
    """A name that breaks the rules is refused with the reason, and the nearest good one if there is one."""
    with pytest.raises(InvalidProfileName, match=reason) as caught:
        check_name(name)
    assert caught.value.suggestion == suggestion
    assert len(str(caught.value)) < 160
    with pytest.raises(InvalidProfileName):
        named(root, name)
    with pytest.raises(InvalidProfileName):
        resolve({"HERMES_HOME": str(root)}, profile=name)


def test_default_is_no_new_name() -> None:
    """``default`` can be chosen and not be made."""
    with pytest.raises(InvalidProfileName, match="always there"):
        check_new_name("default")


def test_order_of_the_choices(root: Path) -> None:
    """Option over HERMES_PROFILE over a home inside profiles/ over active_profile over the default."""
    (root / "active_profile").write_text("play\n")
    inside, at_root = str(root / "profiles" / "home"), str(root)
    table = [
        ({"HERMES_HOME": inside, "HERMES_PROFILE": "work"}, "play", "play", "--profile"),
        ({"HERMES_HOME": inside, "HERMES_PROFILE": "work"}, None, "work", "HERMES_PROFILE"),
        ({"HERMES_HOME": inside, "HERMES_PROFILE": ""}, None, "home", "HERMES_HOME"),
        ({"HERMES_HOME": inside}, "default", "default", "--profile"),
        ({"HERMES_HOME": at_root}, None, "play", "active_profile"),
        ({"HERMES_HOME": at_root, "HERMES_PROFILE": "default"}, None, "default", "HERMES_PROFILE"),
    ]
    for environ, option, name, chosen_by in table:
        profile = resolve(environ, profile=option)
        assert (profile.name, profile.chosen_by, profile.root) == (name, chosen_by, root)
        assert profile.home == (root if name == "default" else root / "profiles" / name)
    (root / "active_profile").unlink()
    assert resolve({"HERMES_HOME": at_root}).chosen_by == "default"


def test_home_option_replaces_the_variables(root: Path, tmp_path: Path) -> None:
    """With --home neither HERMES_HOME nor HERMES_PROFILE is asked, and the rules hold for its path."""
    environ = {"HERMES_HOME": str(tmp_path / "other" / "profiles" / "x"), "HERMES_PROFILE": "nope"}
    assert resolve(environ, home=root).name == "default"
    chosen = resolve(environ, home=root / "profiles" / "work")
    assert (chosen.name, chosen.root, chosen.chosen_by) == ("work", root, "--home")
    assert resolve(environ, home=root, profile="play").name == "play"


def test_where_the_root_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~/.hermes without a variable; a relative path counts from here, ~/ from HOME; blank means not set."""
    home = {"HOME": str(tmp_path)}
    monkeypatch.chdir(tmp_path)
    assert find_root(home).root == tmp_path / ".hermes"
    assert find_root({**home, "HERMES_HOME": " "}).root == tmp_path / ".hermes"
    assert find_root({**home, "HERMES_HOME": "~/x"}).root == tmp_path / "x"
    assert find_root({"HERMES_HOME": "a/../b/"}).root == tmp_path / "b"
    assert find_root({"HERMES_HOME": "x/profiles/work"}) == profiles.RootChoice(
        tmp_path / "x", "work", "HERMES_HOME"
    )
    assert find_root({"HERMES_HOME": "/srv/profiles/Work"}).inside is None
    assert find_root({"HERMES_HOME": "/srv/profiles/work/deeper"}).inside is None


def test_windows_root(monkeypatch: pytest.MonkeyPatch) -> None:
    r"""%LOCALAPPDATA%\hermes there, and below the user's folder if that is not set."""
    monkeypatch.setattr(profiles, "_ON_WINDOWS", True)
    assert str(find_root({"LOCALAPPDATA": "/local"}).root) == "/local/hermes"
    assert str(find_root({"USERPROFILE": "/me"}).root) == "/me/AppData/Local/hermes"
    with pytest.raises(HomeUnusable, match="USERPROFILE is not set"):
        find_root({})


def test_link_to_a_profile_is_that_profile(root: Path, tmp_path: Path) -> None:
    """A home that is a link into profiles/ is the profile it leads to, by name as well."""
    (tmp_path / "link").symlink_to(root / "profiles" / "work")
    profile = resolve({"HERMES_HOME": str(tmp_path / "link")})
    assert (profile.name, profile.home) == ("work", root / "profiles" / "work")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}, {"HERMES_HOME": "~nobody/x"}])
def test_no_home_at_all(environ: dict[str, str]) -> None:
    """Without a place to be, the error says what to set; nothing is guessed."""
    with pytest.raises(HomeUnusable) as caught:
        resolve(environ)
    assert caught.value.next_step


def test_reading_creates_nothing(tmp_path: Path) -> None:
    """The default profile need not exist; asking for it makes no folder."""
    root = tmp_path / "root"
    profile = resolve({"HERMES_HOME": str(root)})
    assert (profile.name, profile.home, profile.paths.config) == ("default", root, root / "config.yaml")
    assert [p.name for p in list_profiles(root)] == ["default"]
    with pytest.raises(ProfileNotFound):
        resolve({"HERMES_HOME": str(root)}, profile="work")
    with pytest.raises(ProfileNotFound):
        resolve({"HERMES_HOME": str(root / "profiles" / "work")})
    assert list(tmp_path.iterdir()) == []


def test_unknown_profile_lists_what_there_is(root: Path) -> None:
    """A profile that is not there is an error with the known ones, the nearest one, and who asked for it."""
    with pytest.raises(ProfileNotFound) as caught:
        resolve({"HERMES_HOME": str(root), "HERMES_PROFILE": "wrok"})
    assert caught.value.known == ("default", "home", "play", "work")
    assert "did you mean 'work'" in caught.value.next_step
    assert "HERMES_PROFILE" in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"gone\n", b"", b"\n", b"../x", b"Work", b"a\nb", b"\xff\xfe\x00", b"x" * 5000, b"con"]
)
def test_stale_active_profile(root: Path, content: bytes) -> None:
    """An active_profile that names no profile is an error that says how to mend it, never a fallback."""
    (root / "active_profile").write_bytes(content)
    environ = {"HERMES_HOME": str(root)}
    with pytest.raises(StaleActiveProfile) as caught:
        resolve(environ)
    assert "hermes profile use" in caught.value.next_step
    assert len(str(caught.value)) < 400
    assert resolve(environ, profile="work").name == "work"
    assert len(list_profiles(root)) == 4


@pytest.mark.parametrize("content", [b"work", b"  work \r\n", b"\xef\xbb\xbfwork\n"])
def test_active_profile_as_editors_write_it(root: Path, content: bytes) -> None:
    """Spaces, line ends and a byte order mark around the name do not matter."""
    (root / "active_profile").write_bytes(content)
    assert resolve({"HERMES_HOME": str(root)}).name == "work"


def test_active_profile_that_cannot_be_read(root: Path) -> None:
    """A choice that cannot be read is an error, not the default."""
    (root / "active_profile").mkdir()
    with pytest.raises(HomeUnusable, match="active_profile"):
        resolve({"HERMES_HOME": str(root)})


def test_home_that_is_a_file(tmp_path: Path) -> None:
    """A file in the place of a home, or above it, is named."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(HomeUnusable, match="file"):
            resolve({"HERMES_HOME": str(path)})
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    with pytest.raises(HomeUnusable, match="unmounted"):
        resolve({"HERMES_HOME": str(tmp_path / "link")})
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "work").touch()
    with pytest.raises(HomeUnusable, match="work"):
        resolve({"HERMES_HOME": str(tmp_path)}, profile="work")


def test_home_without_permission(reachable: Path) -> None:
    """An unreadable home is an error with owner and mode; profiles that cannot be listed are not "none"."""
    (reachable / "root" / "profiles" / "work").mkdir(parents=True)
    give_to_nobody(reachable)
    root = reachable / "root"

    def act() -> None:
        (root / "profiles").chmod(0)
        with pytest.raises(HomeUnusable, match="mode 0000"):
            list_profiles(root)
        with pytest.raises(HomeUnusable, match="Permission denied"):
            resolve({"HERMES_HOME": str(root)}, profile="work")
        (root / "profiles").chmod(0o700)
        (root / "profiles" / "work").chmod(0)
        with pytest.raises(
            HomeUnusable, match=r"no permission to read it \(it belongs to nobody, mode 0000\)"
        ):
            resolve({"HERMES_HOME": str(root)}, profile="work")
        assert [p.name for p in list_profiles(root)] == ["default", "work"]

    unprivileged(act)


def test_folders_that_are_no_profiles(root: Path) -> None:
    """Files and folders that no profile can be called after are not listed."""
    for name in ("Work", ".unfinished-1", "con", "default"):
        (root / "profiles" / name).mkdir()
    (root / "profiles" / "notes").touch()
    assert [p.name for p in list_profiles(root)] == ["default", "home", "play", "work"]


def test_resolved_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolved profile stays what it was, whatever happens to the environment after."""
    environ = {"HERMES_HOME": str(root / "profiles" / "work")}
    profile = resolve(environ)
    environ["HERMES_HOME"] = os.fspath(root / "profiles" / "play")
    monkeypatch.setenv("HERMES_HOME", environ["HERMES_HOME"])
    assert profile.paths.memories == root / "profiles" / "work" / "memories"
