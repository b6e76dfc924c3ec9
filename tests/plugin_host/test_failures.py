"""What is kept of plugins that did not load."""

from __future__ import annotations

from pathlib import Path

from hermes.plugin_host.failures import Failure, Failures
from tests.support import give_to_nobody, unprivileged


def test_kept_told_once_and_forgotten(tmp_path: Path) -> None:
    """A failure is new the first time, known after that, new again when it changes, and gone when forgotten."""
    kept = Failures(tmp_path / "logs" / "plugins.json")
    assert kept.note("a", Failure("one", "f.py", 3))
    assert not kept.note("a", Failure("one", "f.py", 3))
    assert kept.note("a", Failure("two", "f.py", 3))
    assert kept.note("b", Failure("one"))
    assert {name: failure.message for name, failure in kept.all().items()} == {"a": "two", "b": "one"}
    assert str(kept.all()["a"]) == "two (f.py:3)"
    assert kept.all()["a"].when > 0
    kept.forget("a")
    kept.forget("never")
    assert set(kept.all()) == {"b"}
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o700


def test_no_home_is_made_for_it(tmp_path: Path) -> None:
    """Where there is no home, nothing is written and the failure counts as new."""
    kept = Failures(tmp_path / "home" / "logs" / "plugins.json")
    assert kept.note("a", Failure("one"))
    kept.forget("a")
    assert not (tmp_path / "home").exists()


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    """Damage, and another form, count as nothing known."""
    for content in ("{", "[]", '{"a": 1}', '{"a": {"message": "x", "extra": 1}}'):
        (tmp_path / "plugins.json").write_text(content)
        assert Failures(tmp_path / "plugins.json").all() == {}


def test_a_home_that_cannot_be_written(reachable: Path) -> None:
    """A read-only home keeps nothing and raises nothing."""
    (reachable / "home").mkdir(mode=0o555)
    give_to_nobody(reachable)

    def check() -> None:
        assert Failures(reachable / "home" / "logs" / "plugins.json").note("a", Failure("one"))

    unprivileged(check)
