"""Where each answer is kept, and what is there now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import StoreUnavailable, UsageError
from hermes.setup import Field, fields_of
from hermes.setup.places import Answers, current, place_of, sort, tail


def fields(*items: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a schema without mistakes."""
    found, problems = fields_of(list(items))
    assert problems == ()
    return found


@pytest.mark.parametrize(
    ("said", "keeps", "kind", "name"),
    [
        ({"secret": True, "env_var": "MY_API_KEY"}, True, "dotenv", "MY_API_KEY"),
        ({"secret": True}, False, "dotenv", "MY_PROVIDER_API_KEY"),
        ({"env_var": "MY_REGION"}, False, "dotenv", "MY_REGION"),
        ({"env_var": "MY_REGION"}, True, "provider", "api_key"),
        ({}, True, "provider", "api_key"),
        ({}, False, "config", "api_key"),
    ],
)
def test_where_an_answer_goes(said: dict[str, Any], keeps: bool, kind: str, name: str) -> None:
    """Secrets go to .env, the rest to the provider if it keeps it itself, else to .env or the settings."""
    (field,) = fields({"key": "api_key", **said})
    place = place_of("my-provider", field, keeps=keeps)
    assert (place.kind, place.name) == (kind, name)


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "LD_PRELOAD", "HERMES_HOME"])
def test_a_variable_that_decides_which_code_runs_is_no_place(name: str) -> None:
    """What is never taken from a .env is not written there either."""
    (field,) = fields({"key": "x", "env_var": name})
    with pytest.raises(UsageError, match=name):
        place_of("p", field, keeps=False)


def test_only_what_changes_is_written() -> None:
    """A value that is stored already, as the same type, is written neither to .env nor to the settings."""
    form = fields(
        {"key": "key", "secret": True},
        {"key": "auto", "type": "boolean"},
        {"key": "depth", "type": "integer"},
        {"key": "new"},
        {"key": "port", "type": "integer", "env_var": "PORT_OF_IT"},
    )
    stored = {"key": "k", "auto": "false", "depth": 3, "port": "80"}
    answers = {"key": "k", "auto": False, "depth": 3, "new": "x", "port": 80}
    assert sort("p", form, answers, stored, keeps=False) == Answers({}, None, {"auto": False, "new": "x"})


def test_a_provider_gets_everything_that_is_no_secret() -> None:
    """save_config is given every answer, those that stay too: it writes them all at once."""
    form = fields({"key": "key", "secret": True}, {"key": "a"}, {"key": "b"}, {"key": "c", "default": 0})
    found = sort("p", form, {"key": "n", "a": "1", "b": None, "c": 0}, {"a": "1"}, keeps=True)
    assert found == Answers({"P_KEY": "n"}, {"a": "1", "c": 0}, {})


def test_an_emptied_field_is_removed() -> None:
    """A field that is left empty loses what was stored; one that never had anything is no change."""
    form = fields({"key": "key", "secret": True}, {"key": "a"}, {"key": "b"})
    found = sort("p", form, {"key": None, "a": None, "b": None}, {"key": "k", "a": "1"}, keeps=False)
    assert (found.dotenv, found.config) == ({"P_KEY": None}, {"a": None})


def stored(home: Path, form: tuple[Field, ...], **given: Any) -> dict[str, Any]:
    """What is stored for *form* in *home*."""
    empty: dict[str, Any] = {"keeps": True, "variables": {}, "section": {}}
    return current("my-provider", form, **{**empty, **given}, home=home)


def test_what_is_stored_is_found_where_it_is_kept(tmp_path: Path) -> None:
    """.env for secrets; the provider's own file, else the settings, for the rest; empty is not there."""
    form = fields({"key": "key", "secret": True}, {"key": "region"}, {"key": "depth"}, {"key": "none"})
    (tmp_path / "my-provider.json").write_text('{"region": "eu", "depth": 0, "none": ""}')
    section = {"region": "us", "depth": 7}
    variables = {"MY_PROVIDER_KEY": "k"}
    assert stored(tmp_path, form, variables=variables, section=section) == {
        "key": "k",
        "region": "eu",
        "depth": 0,
    }
    assert stored(tmp_path, form, keeps=False, section=section) == section


@pytest.mark.parametrize("name", ["my-provider.json", "my_provider.json", "my-provider/config.json"])
def test_a_damaged_file_of_the_provider_stops_the_setup(tmp_path: Path, name: str) -> None:
    """A file that cannot be read is taken for damaged, never for empty: a setup would write over it."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"region": "eu", ')
    with pytest.raises(StoreUnavailable, match="no JSON that can be read"):
        stored(tmp_path, fields({"key": "region"}))
    assert stored(tmp_path, fields({"key": "region"}), keeps=False) == {}


def test_what_is_shown_of_a_secret() -> None:
    """The last four characters of a long one, nothing of a short one."""
    assert tail("sk-0123456789abcdef") == "****cdef"
    assert tail("hunter2") == "****"
