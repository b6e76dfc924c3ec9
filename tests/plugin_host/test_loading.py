"""Importing a plugin and letting it register: every form that authors use, and every way it can go wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hermes.memory.manager import MemoryManager
from hermes.plugin_host.context import RegistrationContext
from hermes.plugin_host.discovery import Places
from hermes.plugin_host.loading import PARENT, LoadFailed, load
from tests.plugin_host.building import PROVIDER, plugin, provider
from tests.support import python

DUCK = """
class Duck:
    name = "duck"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        pass

    def get_tool_schemas(self):
        return [{"name": "duck_say", "parameters": {"type": "object", "properties": {}}}]

    def handle_tool_call(self, tool_name, args):
        return "plain text, no JSON"

    async def prefetch(self, query, *, session_id=""):
        return "from a coroutine"
"""
CLASS = PROVIDER.partition("\n\ndef register")[0]


def spec_of(folder: Path) -> dict[str, Any]:
    """What loading is given for the plugin in *folder*."""
    found = Places(folder.parent, None, []).find(folder.name, "memory")
    assert found is not None, "it is not found"
    return {**found.spec(), "kind": "memory"}


def loaded(folder: Path) -> RegistrationContext:
    """The context after the plugin in *folder* was loaded."""
    ctx = RegistrationContext(folder.name)
    load(spec_of(folder), ctx)
    return ctx


def failed(folder: Path) -> LoadFailed:
    """Why the plugin in *folder* does not load."""
    with pytest.raises(LoadFailed) as caught:
        loaded(folder)
    return caught.value


@pytest.mark.parametrize(
    "source",
    [
        PROVIDER,
        CLASS,
        CLASS + "\n\nclass Better(Notes):\n    pass\n",
        CLASS + "\n\ndef register(ctx):\n    pass\n",
        CLASS + "\n\ndef register(ctx):\n    ctx.register_memory_provider(Notes)\n",
        CLASS + "\n\nclass Other(Notes):\n    pass\n\ndef register():\n    return Notes\n",
        "from .core import register\n",
        "from .core import Notes\n",
    ],
    ids=[
        "register",
        "one class",
        "a class and its base",
        "register does nothing",
        "a class",
        "register returns it",
        "passed on",
        "imported",
    ],
)
def test_the_forms_of_a_provider(tmp_path: Path, source: str) -> None:
    """A register function, or one concrete class that is made without arguments."""
    folder = plugin(tmp_path / "my-notes", source, core=PROVIDER)
    assert loaded(folder).registered.memory_provider.name == "notes-own-name"


def test_two_classes_are_not_guessed_between(tmp_path: Path) -> None:
    """Without register, several provider classes are named and none is taken."""
    other = CLASS.partition("\n\n\n")[2].replace("class Notes", "class Other")
    error = failed(plugin(tmp_path / "x", f"{CLASS}\n\n{other}"))
    assert "Notes, Other" in error.message


def test_no_provider_at_all(tmp_path: Path) -> None:
    """A package without a provider says so, with its file."""
    folder = plugin(tmp_path / "x", "VALUE = 1  # MemoryProvider\n")
    error = failed(folder)
    assert "no provider class" in error.message
    assert error.file == str(folder / "__init__.py")


def test_a_duck_is_a_provider(tmp_path: Path) -> None:
    """A provider without the base class, with members missing, a coroutine and text for JSON, works in a manager."""
    folder = plugin(
        tmp_path / "duck", DUCK + "\n\ndef register(ctx):\n    ctx.register_memory_provider(Duck())\n"
    )
    manager = MemoryManager(home=tmp_path)
    assert manager.add_provider(loaded(folder).registered.memory_provider)
    manager.initialize_all("s1")
    try:
        assert manager.prefetch_all("what?") == "from a coroutine"
        assert manager.handle_tool_call("duck_say", {}) == '{"result": "plain text, no JSON"}'
        manager.on_turn_start(1, "hello")
        manager.on_session_switch("s2", rewound=True)
        manager.sync_all("a", "b")
    finally:
        manager.shutdown_all()


def test_a_duck_without_register(tmp_path: Path) -> None:
    """The one class with the members of a provider is taken, whatever its base."""
    folder = plugin(tmp_path / "duck", DUCK + "# MemoryProvider\n")
    assert loaded(folder).registered.memory_provider.name == "duck"


def test_imports_within_a_plugin(tmp_path: Path) -> None:
    """Relative imports work, of modules, of packages and of folders without __init__.py; hyphens too."""
    source = "from . import helper\nfrom .core.deep import VALUE\nfrom .bare import thing\n" + PROVIDER
    source = source.replace('said = "{said}"', "said = f'{helper.X} {VALUE} {thing.Y}'")
    folder = plugin(tmp_path / "with-hyphens.and-dots", source, helper="X = 1\n")
    plugin(folder / "core", "", deep="from .. import helper\nVALUE = helper.X + 1\n")
    plugin(folder / "bare", None, thing="Y = 3\n")
    assert loaded(folder).registered.memory_provider.prefetch("") == "1 2 3"


def test_a_sibling_that_is_broken_and_optional(tmp_path: Path) -> None:
    """A module that nobody needs may be broken, and none is run that is not imported."""
    source = "try:\n    from . import extra\nexcept Exception:\n    extra = None\n" + PROVIDER
    ran = tmp_path / "ran"
    folder = plugin(
        tmp_path / "x", source, extra="import no_such_module\n", alone=f"open({str(ran)!r}, 'w')\n"
    )
    assert loaded(folder).registered.memory_provider is not None
    assert not ran.exists()


@pytest.mark.parametrize(
    ("source", "message", "file", "line"),
    [
        (
            "\nimport no_such_module\n" + PROVIDER,
            "ModuleNotFoundError: No module named 'no_such_module'",
            "__init__.py",
            2,
        ),
        ("from .helper import gone\n" + PROVIDER, "ImportError: cannot import name 'gone'", "__init__.py", 1),
        ("from . import broken\n" + PROVIDER, "ZeroDivisionError", "broken.py", 3),
        ("def register(ctx)\n    MemoryProvider\n", "SyntaxError", "__init__.py", 1),
        ("import sys\nsys.exit(3)  # MemoryProvider\n", "SystemExit: 3", "__init__.py", 2),
        (
            "def register(ctx):\n    raise RuntimeError('no key') # MemoryProvider\n",
            "RuntimeError: no key",
            "__init__.py",
            2,
        ),
        ("def register(ctx):\n    ctx.register_memory_provider()\n", "TypeError", "__init__.py", 2),
        (
            "def register(ctx):\n    ctx.of_another_host  # MemoryProvider\n",
            "has no 'of_another_host'",
            "__init__.py",
            2,
        ),
        ("import json\njson.loads('{')  # MemoryProvider\n", "JSONDecodeError", "__init__.py", 2),
    ],
)
def test_what_goes_wrong_names_file_and_line(
    tmp_path: Path, source: str, message: str, file: str, line: int
) -> None:
    """The exception is reported with the innermost line of the plugin's own."""
    folder = plugin(tmp_path / "x", source, helper="", broken="\n\n1 / 0\n")
    error = failed(folder)
    assert message in error.message
    assert (error.file, error.line) == (str(folder / file), line)
    assert f"{folder / file}:{line}" in str(error)


def test_a_provider_registered_before_the_rest_failed_is_kept(tmp_path: Path) -> None:
    """What register had done counts although it raised then, and why it raised is kept too."""
    folder = plugin(tmp_path / "x", PROVIDER + "    ctx.not_there()\n")
    ctx = loaded(folder)
    assert ctx.registered.memory_provider is not None
    assert "has no 'not_there'" in ctx.registered.problem
    last = len((folder / "__init__.py").read_text().splitlines())
    assert f"{folder / '__init__.py'}:{last}" in ctx.registered.problem


def test_two_versions_of_one_plugin_run_their_own_code(tmp_path: Path) -> None:
    """Two profiles with two versions of a plugin, module state included, in one process."""
    source = PROVIDER.replace('"{said}"', "state.SAID")
    one = plugin(tmp_path / "one" / "notes", "from . import state\n" + source, state="SAID = 'version 1'\n")
    two = plugin(tmp_path / "two" / "notes", "from . import state\n" + source, state="SAID = 'version 2'\n")
    first, second = (loaded(folder).registered.memory_provider for folder in (one, two))
    assert (first.prefetch(""), second.prefetch("")) == ("version 1", "version 2")
    assert type(first) is not type(second)


def test_a_plugin_that_was_changed_is_loaded_anew(tmp_path: Path) -> None:
    """Unchanged files are imported once; a change of any module of it is seen at the next load."""
    source = PROVIDER.replace('"{said}"', "state.SAID")
    folder = plugin(tmp_path / "notes", "from . import state\n" + source, state="SAID = 'before'\n")
    first, same = (loaded(folder).registered.memory_provider for _ in range(2))
    assert type(first) is type(same)
    assert first is not same
    (folder / "state.py").write_text("SAID = 'after it'\n")
    os.utime(folder / "state.py", (1, 1))
    assert loaded(folder).registered.memory_provider.prefetch("") == "after it"
    assert first.prefetch("") == "before"


def test_no_name_of_the_application_is_taken(tmp_path: Path) -> None:
    """Loading leaves sys.path alone and adds modules below one name only."""
    folder = plugin(tmp_path / "json", "from . import utils\n" + PROVIDER, utils="")
    before, path = set(sys.modules), list(sys.path)
    loaded(folder)
    assert sys.path == path
    assert {name.partition(".")[0] for name in set(sys.modules) - before} <= {PARENT}


def test_nothing_is_left_of_a_failed_import(tmp_path: Path) -> None:
    """A plugin that was mended loads at the next try in the same process."""
    folder = plugin(tmp_path / "x", "from . import helper\n1 / 0\n" + PROVIDER, helper="")
    before = set(sys.modules)
    failed(folder)
    assert set(sys.modules) - before <= {PARENT}
    plugin(folder, PROVIDER)
    assert loaded(folder).registered.memory_provider is not None


def test_a_shim_that_imports_the_real_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three lines that installers write into the plugins folder are a plugin."""
    plugin(tmp_path / "site" / "made_real", provider("from the real one"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    shim = '"""Made by an installer: a MemoryProvider."""\nfrom made_real import register\n\n__all__ = ["register"]\n'
    folder = plugin(tmp_path / "shim", shim)
    try:
        assert loaded(folder).registered.memory_provider.prefetch("") == "from the real one"
    finally:
        sys.modules.pop("made_real", None)


def test_a_linked_folder_loads(tmp_path: Path) -> None:
    """A plugin behind a link is loaded like any other."""
    plugin(tmp_path / "real", "from . import helper\n" + PROVIDER, helper="")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "linked").symlink_to(tmp_path / "real")
    assert loaded(tmp_path / "plugins" / "linked").registered.memory_provider is not None


def test_workers_need_the_standard_library_only() -> None:
    """Loading imports nothing beside the standard library and hermes: it runs in worker processes."""
    code = """
import sys
before = set(sys.modules)
import hermes.plugin_host.loading, hermes.plugin_host.context
new = {name.partition('.')[0] for name in set(sys.modules) - before}
print(sorted(new - set(sys.stdlib_module_names) - {'hermes'}))
"""
    done = python("-c", code)
    assert done.stdout.strip() == "[]", done.stderr
