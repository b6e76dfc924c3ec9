"""``hermes plugins install|remove``: nothing comes or goes before the person has seen what and agreed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_host.building import PROVIDER, plugin
from tests.support import POWERLESS, hermes
from tests.terminal import Terminal

OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_OFFLINE": "1"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a plugin, as one has it after a download."""
    folder = plugin(
        tmp_path / "downloads" / "notes-main", PROVIDER, "name: notes\nversion: 0.3\n", helper="X = 1\n"
    )
    for name in (".git/config", "__pycache__/x.pyc", ".venv/pyvenv.cfg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def below(folder: Path) -> list[str]:
    """Every file below *folder*."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_is_copied_into_the_profile(home: Path, source: Path) -> None:
    """The plugin lies under the name of its manifest, without what belongs to its author alone, and works."""
    done = hermes("plugins", "install", str(source), "--yes", "--json", home=home)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["plugins"]
    assert (one["name"], one["version"], one["source"]) == ("notes", "0.3", "profile")
    assert below(home / "plugins") == ["notes/__init__.py", "notes/helper.py", "notes/plugin.yaml"]
    assert (home / "plugins").stat().st_mode & 0o777 == 0o700
    found = json.loads(
        hermes("--set", "memory.provider=notes", "memory", "status", "--json", home=home).stdout
    )
    assert found["provider"]["state"] == "ready"


def test_only_into_the_profile_acted_on(home: Path, source: Path) -> None:
    """A plugin goes into the target profile; the one that asks does not get it."""
    for name in ("work", "other"):
        assert hermes("profile", "create", name, home=home).returncode == 0
    done = hermes(
        "-p", "work", "--target-profile", "other", "plugins", "install", str(source), "-y", home=home
    )
    assert done.returncode == 0, done.stderr
    assert (home / "profiles" / "other" / "plugins" / "notes").is_dir()
    assert not (home / "profiles" / "work" / "plugins").exists()


def test_nobody_there_to_agree(home: Path, source: Path) -> None:
    """Without a terminal and --yes it says what it would do, exits 2, and does nothing."""
    done = hermes("plugins", "install", str(source), home=home)
    assert done.returncode == 2
    assert f"copies notes 0.3 from {source}" in done.stderr
    assert not home.exists()


def test_asked_at_a_terminal(home: Path, source: Path) -> None:
    """The question names the plugin, where it goes and what it may do; no answer but yes installs it."""
    with Terminal("plugins", "install", str(source), home=home, columns=400) as terminal:
        terminal.expect("runs with your rights")
        terminal.send("n\r")
        assert terminal.wait() == 1
    assert not (home / "plugins" / "notes").exists()
    with Terminal("plugins", "install", str(source), home=home, columns=400) as terminal:
        terminal.expect("Go on? [y/N]")
        terminal.send("y\r")
        terminal.expect("hermes memory setup notes")
        assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("{tmp}/empty", "holds no plugin"),
        ("{tmp}/missing", "holds no plugin"),
        ("{tmp}/missing.whl", "there is no file"),
        ("git+https://example.invalid/x", "holds no plugin"),
        ("a name", "neither a folder, a wheel, nor the name of a package"),
        ("--index-url=http://x", "No such option"),
    ],
)
def test_what_cannot_be_installed(home: Path, tmp_path: Path, what: str, says: str) -> None:
    """What is no plugin, no wheel and no name is a wrong request: exit 2, and nothing is made."""
    (tmp_path / "empty").mkdir()
    done = hermes("plugins", "install", what.format(tmp=tmp_path), "-y", home=home)
    assert done.returncode == 2
    assert says in done.stderr
    assert not home.exists()


def test_what_is_there_already_is_not_overwritten(home: Path, source: Path) -> None:
    """A second install of one name is refused with the way to do it, and the first stays."""
    plugin(home / "plugins" / "notes", "mine = True\n")
    done = hermes("plugins", "install", str(source), "-y", home=home)
    assert done.returncode == 2
    assert "hermes plugins remove notes" in done.stderr
    assert (home / "plugins" / "notes" / "__init__.py").read_text() == "mine = True\n"


def test_a_home_that_cannot_be_written(home: Path, source: Path) -> None:
    """Where the plugin cannot be copied it exits 4 with the reason, and no half of it is left."""
    (home / "plugins").mkdir(parents=True)
    (home / "plugins").chmod(0o555)
    done = hermes("plugins", "install", str(source), "-y", home=home, powerless=True)
    assert done.returncode == 4
    assert "notes cannot be copied there" in done.stderr
    assert list((home / "plugins").iterdir()) == []


def test_what_a_folder_needs_is_asked_for_first(home: Path, source: Path) -> None:
    """Requirements that cannot be had stop it before anything is copied, with the command to run by hand."""
    (source / "plugin.yaml").write_text("name: notes\npip_dependencies: [attrs, no-such-package-here]\n")
    done = hermes("plugins", "install", str(source), "-y", home=home, env=OFFLINE)
    assert done.returncode == 1
    assert "no-such-package-here cannot be installed" in done.stderr
    assert "install no-such-package-here" in done.stderr
    assert "attrs" not in done.stderr
    assert not (home / "plugins").exists()


def test_removing(home: Path, tmp_path: Path) -> None:
    """A plugin in a folder is deleted, of a link only the link; what it stored stays."""
    plugin(home / "plugins" / "notes")
    plugin(tmp_path / "mine" / "linked")
    (home / "plugins" / "linked").symlink_to(tmp_path / "mine" / "linked")
    (home / "notes.json").write_text("{}")
    assert hermes("plugins", "remove", "notes", home=home).returncode == 2
    for name in ("notes", "linked"):
        assert hermes("plugins", "remove", name, "--yes", home=home).returncode == 0
    assert list((home / "plugins").iterdir()) == []
    assert (tmp_path / "mine" / "linked" / "__init__.py").exists()
    assert (home / "notes.json").exists()


def test_removing_shows_who_comes_after(home: Path) -> None:
    """Where another plugin of the name was hidden, it is named."""
    plugin(home / "plugins" / "notes")
    plugin(home / "plugins" / "memory" / "notes")
    done = hermes("plugins", "remove", "notes", "-y", home=home)
    assert f"notes now is profile {home / 'plugins' / 'memory' / 'notes'}" in done.stderr


def test_what_cannot_be_removed(home: Path) -> None:
    """Bundled plugins, what is in use, another profile's and what is not there: each with the way out."""
    plugin(home / "plugins" / "notes")
    hermes("profile", "create", "work", home=home)
    cases = {
        ("local",): (2, "hermes plugins disable local"),
        ("notes", "--set", "memory.provider=notes"): (1, "hermes plugins select"),
        ("notes", "-p", "work"): (2, "hermes -p default plugins remove notes"),
        ("nosuch",): (3, "hermes plugins list"),
    }
    for words, (code, says) in cases.items():
        done = hermes("plugins", "remove", *words, "-y", home=home)
        assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert (home / "plugins" / "notes").is_dir()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has what this one has, and can be installed into."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (site / "all-of-ours.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    )
    return folder / "bin" / Path(sys.executable).name


def wheel(folder: Path) -> Path:
    """A wheel with a provider, as a build would make it."""
    info = "made_wheel-1.4.dist-info"
    files = {
        "made_wheel/__init__.py": PROVIDER,
        "made_wheel/plugin.yaml": "name: from-wheel\nversion: 1.4\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: made-wheel\nVersion: 1.4\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[hermes_agent.memory_providers]\nfrom-wheel = made_wheel:register\n",
    }
    path = folder / "made_wheel-1.4-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return path


def run(
    python: Path, *words: str, home: Path, prefix: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """The command line in another environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HERMES")}
    return subprocess.run(
        [*(prefix if os.getuid() == 0 else ()), str(python), "-m", "hermes", *words],
        env={**clean, "PYTHONSAFEPATH": "1", "HERMES_HOME": str(home), **OFFLINE},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_wheel_goes_into_the_environment_and_out_again(
    environment: Path, home: Path, tmp_path: Path
) -> None:
    """A wheel is listed before it is installed, its plugin is found and works, and remove uninstalls it."""
    file = wheel(tmp_path)
    refused = run(environment, "plugins", "install", str(file), home=home)
    assert refused.returncode == 2
    assert "made-wheel 1.4" in refused.stderr
    done = run(environment, "plugins", "install", str(file), "--yes", "--json", home=home)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["installed"] == ["made-wheel 1.4"]
    assert [(one["name"], one["source"], one["version"]) for one in said["plugins"]] == [
        ("from-wheel", "package", "1.4")
    ]
    status = run(environment, "--set", "memory.provider=from-wheel", "memory", "status", "--json", home=home)
    assert json.loads(status.stdout)["provider"]["state"] == "ready", status.stderr
    gone = run(environment, "plugins", "remove", "from-wheel", "--yes", home=home)
    assert gone.returncode == 0, gone.stderr
    assert "from-wheel" not in run(environment, "plugins", "list", home=home).stdout


def test_an_environment_that_cannot_be_written(environment: Path, home: Path, tmp_path: Path) -> None:
    """Where nothing can be installed it exits 4 with the exact command to run, and nothing is done."""
    file = wheel(tmp_path)
    site = next((environment.parent.parent / "lib").glob("python*/site-packages"))
    site.chmod(0o555)
    try:
        done = run(environment, "plugins", "install", str(file), "-y", home=home, prefix=POWERLESS)
    finally:
        site.chmod(0o755)
    assert done.returncode == 4, done.stderr
    assert f"install {file}" in done.stderr
    assert not (site / "made_wheel").exists()
