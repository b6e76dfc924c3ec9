"""Writing the answers: in order, said where, and taken back as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import HermesError
from hermes.paths import ProfilePaths
from hermes.setup import fields_of, keeping
from hermes.setup.places import Answers
from hermes.setup.undo import Undo, all_or_nothing
from tests.support import give_to_nobody, unprivileged


class Writers:
    """A provider and settings that write down what they are given."""

    def __init__(self, home: Path, *, fails: bool = False) -> None:
        self.home = home
        self.fails = fails
        self.changed: dict[tuple[str, ...], Any] = {}
        self.removed: list[tuple[str, ...]] = []

    def save_config(self, values: dict[str, Any]) -> None:
        """As most providers do."""
        (self.home / "p.json").write_text(json.dumps(values))

    def change_settings(self, values: Mapping[tuple[str, ...], Any], gone: Sequence[tuple[str, ...]]) -> None:
        """Remembered."""
        if self.fails:
            raise HermesError("the settings cannot be written")
        self.changed, self.removed = dict(values), list(gone)


def write(home: Path, answers: Answers, writers: Writers, undo: Undo) -> str:
    """Keep *answers* of the provider ``p``."""
    return keeping.keep(
        "p",
        ProfilePaths(root=home, home=home),
        answers,
        undo,
        save_config=writers.save_config,
        change_settings=writers.change_settings,
    )


def test_each_answer_is_written_and_said(home: Path) -> None:
    """Secrets to .env, the provider's part to its save_config; the report names variable, key and file."""
    home.mkdir()
    paths, undo = ProfilePaths(root=home, home=home), Undo(home, "p")
    fields, _ = fields_of([{"key": "key", "secret": True}, {"key": "region"}, {"key": "left"}])
    answers = Answers({"P_KEY": "a #b"}, {"region": "eu"}, {})
    own = write(home, answers, Writers(home), undo)
    said = keeping.report("p", fields, {"key": "a #b", "region": "eu", "left": None}, answers, paths, own)
    assert [(one.field, one.name, one.where) for one in said] == [
        ("key", "P_KEY", str(home / ".env")),
        ("region", "region", str(home / "p.json")),
    ]
    assert (home / ".env").read_text() == "P_KEY='a #b'\n"
    assert (home / ".env").stat().st_mode & 0o777 == 0o600


def test_settings_are_set_and_removed_in_one_call(home: Path) -> None:
    """What goes to config.yaml goes there below memory.<provider>; an emptied field is removed."""
    writers = Writers(home)
    assert write(home, Answers({}, None, {"a": False, "b.c": 0, "d": None}), writers, Undo(home, "p")) == ""
    assert writers.changed == {("memory", "p", "a"): False, ("memory", "p", "b.c"): 0}
    assert writers.removed == [("memory", "p", "d")]


@pytest.mark.parametrize("error", [HermesError("no"), KeyboardInterrupt()])
def test_a_failure_takes_everything_back(home: Path, error: BaseException) -> None:
    """Where a later step fails or is interrupted, every file is as it was, byte for byte, and mode."""
    home.mkdir()
    (home / ".env").write_text("OLD=1  # mine\n")
    (home / ".env").chmod(0o600)
    (home / "config.yaml").write_text("# mine\nmemory: {}\n")
    before = {path.name: path.read_bytes() for path in home.iterdir()}

    def step(undo: Undo) -> None:
        write(home, Answers({"P_KEY": "k", "OLD": None}, {"region": "eu"}, {}), Writers(home), undo)
        (home / "config.yaml").write_text("memory: {provider: p}\n")
        (home / "p").mkdir()
        (home / "p" / "config.json").write_text("{}")
        assert len(undo.changed()) == 4
        raise error

    with pytest.raises(type(error)), all_or_nothing(home, "p") as undo:
        step(undo)
    after = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}
    assert {name: content for name, content in after.items() if not name.endswith(".lock")} == before
    assert list((home / "p").iterdir()) == []
    assert (home / ".env").stat().st_mode & 0o777 == 0o600


def test_databases_are_never_put_back(home: Path) -> None:
    """Only small settings files are: what a running session stores meanwhile stays."""
    home.mkdir()

    def step() -> None:
        (home / "journal.db").write_bytes(b"turns")
        (home / ".config.yaml.lock").touch()
        raise HermesError("no")

    with pytest.raises(HermesError), all_or_nothing(home, "p"):
        step()
    assert sorted(path.name for path in home.iterdir()) == [".config.yaml.lock", "journal.db"]


def test_what_cannot_be_taken_back_is_said(reachable: Path) -> None:
    """A file that cannot be put back is named, with what had gone wrong before."""
    home = reachable / "home"
    home.mkdir()
    (home / "p.json").write_text("{}")
    give_to_nobody(home)

    def step() -> None:
        (home / "p.json").write_text('{"new": 1}')
        home.chmod(0o500)
        raise HermesError("first failure")

    def stuck() -> None:
        with pytest.raises(HermesError, match=r"first failure.*p\.json") as failed, all_or_nothing(home, "p"):
            step()
        home.chmod(0o700)
        assert failed.value.next_step == "look at these files"

    unprivileged(stuck)
