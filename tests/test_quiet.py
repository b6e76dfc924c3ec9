"""Importing a library without the packages that it would pull in."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

from hermes.quiet import UNWANTED, importing
from tests.support import python


@pytest.fixture
def jinja2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package called jinja2 that can be imported."""
    (tmp_path / "jinja2.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jinja2", raising=False)


@pytest.mark.usefixtures("jinja2")
def test_hidden_inside_and_back_afterwards() -> None:
    """Inside the block it is not installed; afterwards nothing reminds of it."""
    before = list(sys.meta_path)
    with importing("dynaconf"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("jinja2")
    assert sys.meta_path == before
    assert "jinja2" not in sys.modules
    assert importlib.import_module("jinja2")


@pytest.mark.usefixtures("jinja2")
def test_what_is_imported_already_stays() -> None:
    """The application uses it, so it is not taken away."""
    importlib.import_module("jinja2")
    with importing("dynaconf"):
        assert importlib.import_module("jinja2")


@pytest.mark.usefixtures("jinja2")
def test_other_threads_see_everything() -> None:
    """Another thread that imports it at the same moment gets it."""
    seen: list[str] = []
    with importing("dynaconf"):
        thread = threading.Thread(target=lambda: seen.append(importlib.import_module("jinja2").__name__))
        thread.start()
        thread.join()
    assert seen == ["jinja2"]


def test_an_error_inside_leaves_nothing_behind() -> None:
    """The finder goes whatever happens."""
    before = list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), importing("dynaconf"):
        raise ZeroDivisionError
    assert sys.meta_path == before
    assert set(UNWANTED) == {"dynaconf", "dependency_injector"}


def test_what_was_postponed_is_there_when_asked_for() -> None:
    """The integrations of dynaconf are not imported with it, and work for whoever wants them afterwards."""
    script = """
import sys
import hermes.settings.profile_settings
assert "dynaconf.contrib" not in sys.modules
import dynaconf
from dynaconf import FlaskDynaconf, inspect_settings
assert inspect_settings.__module__ == "dynaconf.utils.inspect"
assert FlaskDynaconf.__module__ == "dynaconf.contrib.flask_dynaconf", FlaskDynaconf
assert dynaconf.Dynaconf(settings_files=[]) is not None
try:
    dynaconf.nonsense
except AttributeError:
    print("fine")
"""
    done = python("-c", script)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_a_library_that_the_application_has_stays_as_it_is() -> None:
    """Imported before hermes was, it keeps everything."""
    script = """
import dynaconf
before = dict(vars(dynaconf))
import hermes.settings.profile_settings
assert dict(vars(dynaconf)) == before
"""
    done = python("-c", script)
    assert done.returncode == 0, done.stderr


def test_asyncio_is_imported_when_it_is_used() -> None:
    """What was imported meanwhile has it at its first use; the others find it as ever, also its modules."""
    code = """
import sys
from hermes.quiet import asyncio_later, importing
with asyncio_later(), importing("dependency_injector"):
    from dependency_injector import containers, providers
assert "asyncio" not in sys.modules

async def made():
    return 5

async def use():
    provider = providers.Singleton(made)
    provider.enable_async_mode()
    return await provider(), await provider()

import asyncio.events
assert asyncio.run(use()) == (5, 5)
with asyncio_later():
    assert sys.modules["asyncio"] is asyncio
print("fine")
"""
    done = python("-c", code)
    assert done.stdout == "fine\n", done.stderr
