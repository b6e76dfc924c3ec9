"""Answers that come with the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.errors import UsageError
from hermes.setup import fields_of, given


def answers(
    *, fields: tuple[str, ...] = (), secrets: tuple[str, ...] = (), stdin: str = ""
) -> dict[str, str]:
    """What these options say, with one variable in the environment."""
    return given.answers(fields, secrets, {"MY_KEY": "k-from-env"}, lambda: stdin)


def test_where_a_secret_comes_from(tmp_path: Path) -> None:
    """A file, standard input and a variable; the line end at the end is not part of it, anything else is."""
    file = tmp_path / "key"
    file.write_text(" a #b \r\n", encoding="utf-8")
    assert answers(secrets=(f"a=@{file}", "b=-", "c=env:MY_KEY"), stdin="typed\n") == {
        "a": " a #b ",
        "b": "typed",
        "c": "k-from-env",
    }
    assert answers(fields=("x=a=b", "y=")) == {"x": "a=b", "y": ""}


@pytest.mark.parametrize(
    ("fields", "secrets", "says"),
    [
        ((), ("k=sk-12345",), "not written into the command"),
        ((), ("k=env:NOBODY",), "no variable NOBODY"),
        ((), ("k=@/nowhere/key",), "No such file"),
        ((), ("k=-",), "is empty"),
        (("novalue",), (), "KEY=VALUE"),
        (("k=1",), ("k=env:MY_KEY",), "given twice"),
    ],
)
def test_options_that_say_nothing(fields: tuple[str, ...], secrets: tuple[str, ...], says: str) -> None:
    """A secret on the command line, a source that is not there or empty, a key without a value: refused."""
    with pytest.raises(UsageError, match=says) as wrong:
        answers(fields=fields, secrets=secrets)
    assert "sk-12345" not in str(wrong.value.as_dict())


def test_secrets_and_fields_are_not_mixed_up() -> None:
    """--field does not take a secret, where others could read it, and --secret takes nothing else."""
    fields, _ = fields_of([{"key": "key", "secret": True}, {"key": "region"}])
    given.check_kinds(fields, ["region=x", "unknown=1"], ["key=-"])
    with pytest.raises(UsageError, match="key is a secret"):
        given.check_kinds(fields, ["key=sk-1"], [])
    with pytest.raises(UsageError, match="region is no secret"):
        given.check_kinds(fields, [], ["region=-"])
