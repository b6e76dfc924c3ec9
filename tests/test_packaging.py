"""What the wheel holds, what a start imports, and which folder may import which."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path, PurePosixPath

import pytest

from tests.support import python

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("cli", "containers", "plugins", "settings")
FOLDERS = ("hermes", *MAPPED)
DATA = ("*.yaml", "*.md", "*.sql", "py.typed")
HEAVY = {
    "dynaconf",
    "dependency_injector",
    "cattrs",
    "rich",
    "sqlite3",
    "asyncio",
    "yaml",
    "ruamel",
    "pydantic",
}


def files(folder: str, *patterns: str) -> list[Path]:
    """The files of *folder* that match, relative to the root of the project."""
    found = {path for pattern in patterns for path in (ROOT / folder).rglob(pattern) if path.is_file()}
    return sorted(path.relative_to(ROOT) for path in found if "__pycache__" not in path.parts)


def installed(path: Path) -> str:
    """Where the wheel puts the file at *path*."""
    return str(PurePosixPath(*(("hermes",) if path.parts[0] in MAPPED else ()), *path.parts))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The names in the wheel, built from a copy so that no leftover of an earlier build gets in."""
    source = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(source / "dist"),
        str(source),
    ]
    result = subprocess.run(build, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    (built,) = (source / "dist").glob("*.whl")
    return frozenset(zipfile.ZipFile(built).namelist())


def test_top_level_of_the_wheel(wheel: frozenset[str]) -> None:
    """The wheel installs hermes and its own metadata only: no module of anybody else is shadowed."""
    top = {name.split("/")[0] for name in wheel}
    assert {name for name in top if not name.endswith(".dist-info")} == {"hermes"}
    assert len(top) == 2


def test_wheel_holds_every_file(wheel: frozenset[str]) -> None:
    """Each module and data file of the tree is in the wheel, and each module of the wheel in the tree."""
    modules = {installed(path) for folder in FOLDERS for path in files(folder, "*.py")}
    data = {installed(path) for folder in FOLDERS for path in files(folder, *DATA)}
    assert {name for name in wheel if name.endswith(".py")} == modules
    assert data - wheel == set()
    assert {"hermes/py.typed", "hermes/settings/defaults.yaml"} <= wheel


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_are_packages(folder: str) -> None:
    """Every folder that holds files has an __init__.py: setuptools drops one without it, silently."""
    holding = {parent for path in files(folder, "*") for parent in path.parents if parent != Path()}
    assert [str(path) for path in sorted(holding) if not (ROOT / path / "__init__.py").exists()] == []


def test_bundled_plugins_are_in_the_wheel(wheel: frozenset[str]) -> None:
    """Each plugin folder has its plugin.yaml, its code and its README, and all three are installed."""
    plugins = [path for kind in (ROOT / "plugins").iterdir() if kind.is_dir() for path in kind.iterdir()]
    plugins = [path for path in plugins if path.is_dir() and path.name != "__pycache__"]
    assert "local" in {path.name for path in plugins}
    wanted = {
        installed(path.relative_to(ROOT) / name)
        for path in plugins
        for name in ("plugin.yaml", "__init__.py", "README.md")
    }
    assert wanted - wheel == set()


def test_no_module_is_named_like_a_mapped_folder() -> None:
    """hermes/ holds no settings, containers, plugins or cli of its own: the mapped folder would be hidden."""
    assert {path.stem for path in (ROOT / "hermes").iterdir()} & set(MAPPED) == set()


def test_tests_lie_in_tests_only() -> None:
    """No conftest.py at the root and no test in a shipped folder; tests/ is packages throughout."""
    strays = [path for folder in FOLDERS for path in files(folder, "conftest.py", "test_*.py")]
    assert strays == []
    assert not (ROOT / "conftest.py").exists()
    folders = {path.parent for path in files("tests", "*.py")}
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("name", MAPPED)
def test_bare_imports_are_banned(name: str) -> None:
    """Ruff refuses `import settings` and its like, which would find a second copy of our own modules."""
    result = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--stdin-filename", "hermes/example.py", "-"],
        input=f"import {name}\n",
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TID251" in result.stdout


# -- what a start imports ------------------------------------------------------------------------------------


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after *code*."""
    result = python("-c", f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)")
    assert result.returncode == 0, result.stderr
    return {name.partition(".")[0] for name in result.stdout.splitlines()[-1].split()}


def test_command_line_starts_light() -> None:
    """Importing the command line loads no container, no settings library, no database and no rich."""
    assert loaded_by("import hermes.cli.app") & HEAVY == set()


def test_help_of_every_group_starts_light() -> None:
    """The command tree can be listed without loading what a command needs when it runs."""
    assert loaded_by("from hermes.cli.app import command\ncommand().commands") & HEAVY == set()


def test_version_loads_no_command_line_library() -> None:
    """`hermes --version` answers before typer or attrs is imported."""
    run = "try: hermes.cli.main()\nexcept SystemExit: pass"
    code = f"import hermes.cli\nsys.argv = ['hermes', '--version']\n{run}"
    assert loaded_by(code) & {*HEAVY, "typer", "attr", "attrs"} == set()


# -- which folder may import which ---------------------------------------------------------------------------


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of every import in the file, wherever it stands; name is "" for a plain import."""
    package = installed(path).removesuffix(".py").split("/")[:-1]
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield from ((".".join([*base, *filter(None, [node.module])]), alias.name) for alias in node.names)


def within(module: str, name: str, *packages: str) -> bool:
    """True if importing *name* from *module* reaches into one of *packages*."""
    full = f"{module}.{name}"
    return any(f"{target}.".startswith(f"{package}.") for target in (module, full) for package in packages)


def offenders(folder: str, *packages: str, but: tuple[str, ...] = ()) -> list[str]:
    """Imports below *folder*, except in the paths *but*, that reach into one of *packages*."""
    return [
        f"{path}: {module} {name}".rstrip()
        for path in files(folder, "*.py")
        if not str(path).startswith(but or ("-",))
        for module, name in imports(path)
        if within(module, name, *packages)
    ]


UPPER = ("hermes.settings", "hermes.containers", "hermes.cli")


def test_the_domain_stands_alone() -> None:
    """hermes/ imports neither the layers above it nor their libraries; only compat and testing look up."""
    assert offenders("hermes", *UPPER, but=("hermes/__main__.py", "hermes/compat/", "hermes/testing/")) == []
    assert offenders("hermes", "dynaconf", "dependency_injector", "typer", "cattrs") == []
    plugins = {
        f"hermes.plugins.{path.parent.relative_to('plugins')}" for path in files("plugins", "plugin.yaml")
    }
    named = sorted(name.replace("/", ".") for name in plugins)
    assert offenders("hermes", *named, but=("hermes/testing/",)) == []  # no plugin is special to the host


def test_settings_and_containers_look_down_only() -> None:
    """settings/ uses the domain, containers/ the domain and the settings: no plugin, no command line."""
    assert offenders("settings", "hermes.containers", "hermes.cli", "hermes.plugins", "typer") == []
    assert offenders("containers", "hermes.cli", "hermes.plugins", "typer", "dynaconf") == []


def test_special_libraries_stay_in_one_place() -> None:
    """dynaconf is imported by one module, and dependency-injector by the blueprint only."""
    everywhere = [line for folder in FOLDERS for line in offenders(folder, "dynaconf", "dependency_injector")]
    assert {line.partition(":")[0] for line in everywhere} == {
        "containers/blueprint.py",
        "settings/profile_settings.py",
    }


def test_plugins_use_what_an_outside_author_has() -> None:
    """A bundled plugin imports public names of hermes, and of hermes.plugins only its own modules."""
    assert offenders("plugins", "hermes.settings", "hermes.containers", "hermes.cli", "hermes.compat") == []
    for path in files("plugins", "*.py"):
        own = ".".join(installed(path).split("/")[:4])
        for module, name in imports(path):
            if within(module, name, "hermes.plugins"):
                assert within(module, name, own), f"{path} imports {module}"
            elif module.split(".")[0] == "hermes":
                private = [part for part in (*module.split("."), name) if part.startswith("_")]
                assert private == [], f"{path} imports {module} {name}"


@pytest.mark.parametrize("path", ["hermes/errors.py", "hermes/memory/provider.py", "hermes/quiet.py"])
def test_worker_modules_need_the_standard_library_only(path: str) -> None:
    """What a worker process imports needs nothing that its environment might not have."""
    allowed = {*sys.stdlib_module_names, "hermes"}
    assert {module.partition(".")[0] for module, _ in imports(Path(path))} - allowed == set()
    assert loaded_by(f"import {path.removesuffix('.py').replace('/', '.')}") - allowed == set()


def test_what_is_imported_is_declared() -> None:
    """Every third-party module that the shipped folders import belongs to a declared requirement."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        item for name, items in project["optional-dependencies"].items() if name != "dev" for item in items
    ]
    declared = {_bare(item) for item in [*project["dependencies"], *extras]} | {"pytest"}  # the testing kit
    known = packages_distributions()
    found = {
        module.partition(".")[0]
        for folder in FOLDERS
        for path in files(folder, "*.py")
        for module, _ in imports(path)
    }
    undeclared = {
        module
        for module in found - {*sys.stdlib_module_names, "hermes", ""}
        if not declared & {_bare(name) for name in known.get(module, [module])}
    }
    assert undeclared == set()


def _bare(requirement: str) -> str:
    """The name in a requirement, in its normal form."""
    name = next(
        (requirement[:i] for i, c in enumerate(requirement) if not (c.isalnum() or c in "-_.")), requirement
    )
    return name.replace("_", "-").replace(".", "-").lower()
