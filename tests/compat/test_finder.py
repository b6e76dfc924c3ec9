"""Which module a name means while the host modules are served, and what is left when they are not."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest

from hermes.compat import finder
from hermes.errors import ProfileBusy, Unavailable
from hermes.plugin_host.host import Host
from tests.support import python

SURFACE = """
agent.auxiliary_client: call_llm extract_content_or_reasoning
agent.context_engine: ContextEngine
agent.delegation_context: is_delegated_child_context is_delegated_child_process_context
agent.memory_manager: MemoryManager build_memory_context_block sanitize_context StreamingContextScrubber
agent.memory_manager: normalize_tool_schema inject_memory_provider_tools memory_provider_tools_enabled
agent.memory_provider: MemoryProvider RecallStatus is_trivial_prompt spawn_context_thread ctx_bound
agent.memory_provider: INDICATOR_GLYPH PRE_COMPRESS_CHECKPOINT_API_VERSION is_core_memory_provider
agent.redact: redact_sensitive_text
agent.secret_scope: get_secret current_secret_scope set_secret_scope reset_secret_scope
agent.secret_scope: build_profile_secret_scope is_multiplex_active
agent.skill_commands: extract_user_instruction_from_skill_message
gateway.session_context: get_session_env
hermes_cli.config: load_config load_config_readonly save_config cfg_get get_env_value_prefer_dotenv load_env
hermes_cli.config: save_env_value get_hermes_home get_config_path
hermes_cli.curses_ui: curses_radiolist
hermes_cli.memory_setup: _curses_select cmd_setup_provider
hermes_cli.plugins: get_plugin_manager PluginContext PluginManifest VALID_HOOKS
hermes_cli.profiles: get_active_profile_name list_profiles
hermes_cli.secret_prompt: masked_secret_prompt
hermes_constants: get_hermes_home set_hermes_home_override reset_hermes_home_override hermes_home_key
hermes_constants: profile_name_for_home get_default_hermes_root display_hermes_home
hermes_state: SessionDB
hermes_time: get_timezone
plugins.memory: load_memory_provider list_memory_provider_names discover_memory_providers find_provider_dir
plugins.memory: discover_plugin_cli_commands
plugins.memory.config_schema: ProviderConfigSchema ProviderField ProviderFieldOption STORAGE_FLAT_JSON
plugins.memory.config_schema: KIND_TEXT KIND_SELECT KIND_SECRET KIND_NUMBER KIND_BOOL
tools.registry: tool_error tool_result registry
tools.skill_provenance: get_current_write_origin is_background_review
tools.threat_patterns: first_threat_message scan_for_threats
tools.write_approval: write_approval_enabled
utils: atomic_json_write read_json_or_empty atomic_replace
"""
STUB = """
import sys
from hermes.compat import finder

class Host:
    def home(self): return "/nowhere"
    def root(self): return "/nowhere"
    def profile_name(self): return "default"

"""


def run(code: str, folder: Path) -> str:
    """Run *code* with a host that knows its name, in *folder*, which is on the path; what it prints."""
    done = python("-c", f"{STUB}sys.path.insert(0, {str(folder)!r})\n{code}", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    """Write *files* below *folder*."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_everything_that_plugins_import_is_there(tmp_path: Path) -> None:
    """Every module and every name that published plugins import can be imported in a worker."""
    lines = [line.split(": ") for line in SURFACE.strip().splitlines()]
    imports = "\n".join(f"from {module} import {', '.join(names.split())}" for module, names in lines)
    assert run(f"finder.install(Host(), worker=True)\n{imports}\nprint('all')", tmp_path) == "all"


def test_a_worker_needs_the_standard_library_only(tmp_path: Path) -> None:
    """Importing the host modules brings in nothing that is installed, but for the two that say so."""
    code = (
        "finder.install(Host(), worker=True)\n"
        "import importlib\n"
        "for name in finder.names():\n"
        "    if name not in ('agent.memory_manager', 'hermes_state'):\n"
        "        importlib.import_module(name)\n"
        "print(sorted({'attr', 'attrs', 'cattrs', 'yaml', 'dynaconf', 'ruamel', 'dotenv', 'httpx', 'typer', "
        "'openai', 'hermes.settings', 'hermes.containers'} & set(sys.modules)))"
    )
    assert run(code, tmp_path) == "[]"


def test_an_application_sees_its_own_modules_only(tmp_path: Path) -> None:
    """``utils``, ``tools``, ``agent`` and ``plugins`` of an application are its own before, during and after."""
    write(
        tmp_path,
        {
            "utils.py": "MINE = 'utils'",
            "tools/__init__.py": "",
            "tools/registry.py": "MINE = 'tools.registry'",
            "agent/__init__.py": "MINE = 'agent'",
            "plugins/__init__.py": "MINE = 'plugins'",
            "plugins/memory.py": "MINE = 'plugins.memory'",
        },
    )
    code = """
import importlib

def look(order):
    for name in order:
        assert importlib.import_module(name).MINE == name, name
    for name in ("agent.memory_provider", "plugins.memory.config_schema", "tools.threat_patterns"):
        try:
            importlib.import_module(name)
        except ImportError as exc:
            assert "another host" not in str(exc), exc
        else:
            raise AssertionError(name)

def forget():
    for name in [n for n in sys.modules if n.partition(".")[0] in ("utils", "tools", "agent", "plugins")]:
        del sys.modules[name]

names = ["utils", "tools.registry", "agent", "plugins", "plugins.memory"]
look(names)
finder.install(Host())
look(names)
forget()
look(names)
import hermes_constants
finder.uninstall()
look(names)
forget()
look(names)
print(sorted(n for n in sys.modules if n.startswith("hermes_c")))
"""
    assert run(code, tmp_path) == "[]"


def test_nothing_is_served_unasked(tmp_path: Path) -> None:
    """Opening a profile, and running pytest with hermes installed, leave ``sys.meta_path`` as it was."""
    code = (
        "before = list(sys.meta_path)\n"
        "from pathlib import Path\n"
        "from hermes.containers import Hermes\n"
        "with Hermes(environ={}, home=Path('home')).open() as me:\n"
        "    me.memory_manager().initialize_all('s')\n"
        "    assert sys.meta_path == before\n"
        "assert sys.meta_path == before\n"
    )
    run(code, tmp_path)
    write(
        tmp_path,
        {
            "test_it.py": (
                "import sys\n\n\ndef test_nothing(request):\n"
                "    ours = [f for f in sys.meta_path if type(f).__module__.startswith('hermes')]\n"
                "    assert ours == []\n"
                "    assert not [m for m in sys.modules if m.startswith('hermes.compat')]\n"
            )
        },
    )
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_sub_modules_are_attributes_of_their_parents(
    hermes_host_modules: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test may replace a name of a host module by its dotted string."""
    monkeypatch.setattr("hermes_cli.config.load_config", lambda: {"mine": True})
    config = importlib.import_module("hermes_cli.config")
    assert importlib.import_module("hermes_cli").config is config
    assert config.load_config() == {"mine": True}


def test_what_was_imported_is_forgotten(hermes_host_modules: Host) -> None:
    """After ``uninstall`` no host module is left, and the next import of one fails."""
    for name in ("agent.memory_manager", "utils", "hermes_cli.plugins"):
        importlib.import_module(name)
    finder.uninstall()
    tops = {name.partition(".")[0] for name in finder.names()} - {"plugins"}
    assert not [name for name in sys.modules if name.partition(".")[0] in tops]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("hermes_constants")


def test_one_profile_at_a_time(hermes_host_modules: Host) -> None:
    """The host modules speak for one profile in a process; a second one is told who has them."""
    with pytest.raises(ProfileBusy, match="'default'"):
        finder.install(hermes_host_modules)


def test_a_module_kept_from_before_says_that_nobody_is_there(hermes_host_modules: Host) -> None:
    """A function that outlives ``uninstall`` raises an error with the reason; it answers for no other profile."""
    constants = importlib.import_module("hermes_constants")
    finder.uninstall()
    with pytest.raises(Unavailable, match="no profile is open"):
        constants.get_hermes_home()


@pytest.mark.parametrize(
    "name", ["gateway.run", "agent.prompt_builder", "hermes_cli.kanban_db", "tools.approval"]
)
def test_a_module_that_is_not_served_is_named(hermes_host_modules: Host, name: str) -> None:
    """A module of another host that this one has not gives an error that names it."""
    with pytest.raises(ModuleNotFoundError, match=f"{name} is a module of another host") as raised:
        importlib.import_module(name)
    assert raised.value.name == name
    with pytest.raises(ImportError, match="cannot import name"):
        exec(f"from {name.rpartition('.')[0]} import {name.rpartition('.')[2]}")


def test_the_version_of_the_contract(hermes_host_modules: Host) -> None:
    """A version check finds the contract's version, as module and as distribution; other names are not answered."""
    assert importlib.import_module("hermes_cli").__version__ == "0.22.0"
    for name in ("hermes-agent", "hermes_agent"):
        assert importlib.metadata.version(name) == "0.22.0"
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("hermes-agent-extra")
    finder.uninstall()
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("hermes-agent")


def test_in_a_worker_the_host_comes_first(tmp_path: Path) -> None:
    """What wheels put beside the host's names does not hide them; what the plugin puts on the path does."""
    write(
        tmp_path,
        {
            "site/tools/__init__.py": "",
            "site/utils.py": "",
            "site/plugins/memory/from_wheel/__init__.py": "HERE = 1",
            "own/utils.py": "MINE = 1",
            "own/settings_of_mine.py": "MINE = 1",
        },
    )
    code = f"""
sys.path.append({str(tmp_path / "site")!r})
finder.install(Host(), worker=True)
from tools.registry import tool_error
from plugins.memory import list_memory_provider_names
from plugins.memory.from_wheel import HERE
sys.path.insert(0, {str(tmp_path / "own")!r})
from utils import MINE
from hermes_constants import get_hermes_home
print(tool_error("x"), get_hermes_home(), HERE, MINE)
"""
    assert run(code, tmp_path) == '{"error": "x"} /nowhere 1 1'
