"""What the package offers, and that its page says all of it."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

import hermes.settings
from hermes.settings.schema import SECTIONS, Retention, Timeouts
from tests.support import python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_every_public_name_is_there() -> None:
    """``__all__`` is sorted, complete, and everything in it can be imported."""
    names = hermes.settings.__all__
    assert names == sorted(names)
    assert all(getattr(hermes.settings, name) is not None for name in names)


def test_reading_imports_no_writer() -> None:
    """Loading settings needs neither ruamel.yaml nor the modules that write and check."""
    script = (
        "import sys; from pathlib import Path; from hermes.profiles import Profile; from hermes.settings import load\n"
        "load(Profile('default', Path('/nowhere'), Path('/nowhere'), 'test'), environ={})\n"
        "print(sorted({'ruamel.yaml', 'hermes.settings.writing', 'difflib', 'flask'} & set(sys.modules)))"
    )
    done = python("-c", script)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_the_page_lists_every_key() -> None:
    """docs/settings.md has a row for each key of ours, with its default, and none for keys that are gone."""
    made = {"providers", "provider_timeouts", "by_name", "timeouts", "retention"}
    schemas = {**SECTIONS, "memory.timeouts": Timeouts, "local.retention": Retention}
    keys = {
        f"{s}.{f.name}" for s, schema in schemas.items() for f in attrs.fields(schema) if f.name not in made
    }
    assert set(re.findall(r"^\| `([a-z_.]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)) == keys
