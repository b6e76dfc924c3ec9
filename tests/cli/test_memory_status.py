"""``hermes memory status``: the truth about a profile, found by looking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import hermes


def status(home: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """The status as --json gives it."""
    done = hermes("memory", "status", "--json", *words, home=home)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def configure(home: Path, text: str) -> None:
    """Write the profile's settings."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(text)


def test_a_fresh_home(home: Path) -> None:
    """Without any settings the provider is local and ready, nothing is stored, and nothing is created."""
    found = status(home)
    assert (found["profile"], found["home"]) == ("default", str(home))
    assert (found["provider"]["name"], found["provider"]["state"]) == ("local", "ready")
    assert found["builtin"]["memory"]["entries"] == found["pending"] == found["journal"]["undelivered"] == 0
    assert not home.exists()


def test_what_a_person_reads(home: Path) -> None:
    """The text names profile, home, entries with percentage, provider and what is undelivered."""
    hermes("memory", "add", "x" * 220, home=home)
    text = hermes("memory", "status", home=home).stdout
    for part in ("default", str(home), "1 entry, 220 of 2,200 characters (10 %)", "local: ready", "nothing"):
        assert part in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("settings", "state", "says"),
    [
        ("memory: {provider: nosuch}\n", "unavailable", "no plugin of that name"),
        ("memory: {provider: loca}\n", "unavailable", "did you mean 'local'"),
    ],
)
def test_a_provider_that_cannot_be_used(home: Path, settings: str, state: str, says: str) -> None:
    """A configured provider that is not there exits 4 with the reason, and the rest is shown all the same."""
    configure(home, settings)
    found = status(home, code=4)
    assert found["provider"]["state"] == state
    assert says in found["provider"]["reason"]
    assert found["builtin"]["memory"]["limit"] == 2200


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", "local/../local", "..", "evil.py/"])
def test_a_provider_is_never_a_path(home: Path, name: str) -> None:
    """A path in the place of a provider's name is refused, and nothing at that path is imported."""
    configure(home, f"memory: {{provider: {json.dumps(name)}}}\n")
    evil = home.parent / "evil"
    evil.mkdir()
    (evil / "__init__.py").write_text(f"open({str(home / 'imported')!r}, 'w')\n")
    done = hermes("memory", "status", home=home)
    assert done.returncode in (4, 78)
    assert not (home / "imported").exists()


@pytest.mark.parametrize(
    "text", ["memory:\n  provider: ''\n", "memory: {}\n", "display: {}\n", "memory: {provider: none}\n"]
)
def test_a_config_without_a_provider_has_none(home: Path, text: str) -> None:
    """A config.yaml that chooses no provider means none, and status prints the command that turns local on."""
    configure(home, text)
    found = status(home)
    assert (found["provider"]["name"], found["provider"]["state"]) == (None, "off")
    assert "hermes config set memory.provider local" in hermes("memory", "status", home=home).stdout


def test_a_provider_with_data_that_is_not_chosen_is_suggested(home: Path) -> None:
    """Where the provider is off and one has data in this home, status names it and the line that turns it on."""
    hermes("memory", "add", "x is y", home=home)
    hermes("memory", "off", home=home)
    text = hermes("memory", "status", home=home).stdout
    assert "local has data here" in text
    assert "hermes config set memory.provider local" in text


def test_every_profile(home: Path) -> None:
    """--all-profiles shows each profile of the root, and one that is broken does not hide the others."""
    hermes("profile", "create", "work", home=home)
    hermes("profile", "create", "broken", home=home)
    (home / "profiles" / "broken" / "config.yaml").write_text("memory: [1, 2]\n")
    done = hermes("memory", "status", "--all-profiles", "--json", home=home)
    found = {one["profile"]: one for one in json.loads(done.stdout)}
    assert done.returncode == 78
    assert set(found) == {"default", "work", "broken"}
    assert found["broken"]["error"]["exit_code"] == 78
    assert found["work"]["provider"]["state"] == "ready"


def test_a_target_profile_is_what_is_shown(home: Path) -> None:
    """With --target-profile the status is that of the target, --set included."""
    hermes("profile", "create", "work", home=home)
    found = status(home, "--target-profile", "work", "--set", "memory.memory_char_limit=500")
    assert found["profile"] == "work"
    assert found["builtin"]["memory"]["limit"] == 500


def test_last_write_and_recall_are_shown(home: Path) -> None:
    """After a write and a recall, status tells when each was and how long the calls took."""
    hermes("memory", "add", "The kiln is in Hall C.", home=home)
    hermes("memory", "recall", "Where is the kiln?", home=home)
    found = status(home)
    assert found["last_write"] is not None
    assert found["last_recall"] is not None
    assert found["hooks"]["prefetch"]["calls"] == 1
    assert "prefetch: 1" in hermes("memory", "status", "-v", home=home).stdout


def test_no_home_at_all(tmp_path: Path) -> None:
    """Without HOME and HERMES_HOME the command says which to set, and exits 4."""
    from tests.support import python

    done = python("-m", "hermes", "memory", "status", env={"HOME": "", "HERMES_HOME": ""}, cwd=tmp_path)
    assert done.returncode == 4
    assert "HERMES_HOME" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    """A file in the place of the home is named, exit 4."""
    (tmp_path / "home").write_text("")
    done = hermes("memory", "status", home=tmp_path / "home")
    assert done.returncode == 4
    assert str(tmp_path / "home") in done.stderr


@pytest.mark.parametrize("command", [["status"], ["list"], ["add", "x is y"], ["recall", "where is it?"]])
def test_a_home_that_cannot_be_read(home: Path, command: list[str]) -> None:
    """A home without read permission is an error that names it, never an empty memory."""
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_text("Rosa prefers tea.\n")
    home.chmod(0o000)
    try:
        done = hermes("memory", *command, home=home, powerless=True)
    finally:
        home.chmod(0o700)
    assert done.returncode == 4, done.stdout + done.stderr
    assert str(home) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_read_only_home(home: Path) -> None:
    """A home that cannot be written can be looked at; a write says so, and the mode stays as it was."""
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_text("Rosa prefers tea.\n")
    (home / "memories").chmod(0o555)
    home.chmod(0o555)
    try:
        looked = hermes("memory", "status", "--json", home=home, powerless=True)
        assert json.loads(looked.stdout)["builtin"]["memory"]["entries"] == 1, looked.stderr
        recalled = hermes("memory", "recall", "What does Rosa prefer?", home=home, powerless=True)
        assert "Rosa prefers tea." in recalled.stdout
        done = hermes("memory", "add", "Rosa prefers coffee.", home=home, powerless=True)
        assert home.stat().st_mode & 0o777 == 0o555
    finally:
        home.chmod(0o700)
    assert done.returncode == 4, done.stdout + done.stderr
    assert str(home) in done.stderr
    assert "Traceback" not in done.stderr
