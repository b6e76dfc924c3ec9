"""The fixtures that come with hermes, in a project of somebody else."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import python

ROOT = Path(__file__).resolve().parents[2]


def run_pytest(folder: Path, code: str) -> str:
    """Run *code* as a test file in a folder of its own; what pytest prints, which must be a pass."""
    (folder / "test_it.py").write_text(code)
    done = python("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "test_it.py", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    """The six lines of the README that replace a part are a test that passes as it stands."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "override(" in block]
    assert len(code.strip().splitlines()) == 6
    assert "1 passed" in run_pytest(tmp_path, code)


def test_the_fixtures_reach_no_real_home(tmp_path: Path) -> None:
    """The home is below the test's own folder, and the profile is closed after the test."""
    code = (
        "def test_home(hermes_profile, hermes_home, tmp_path):\n"
        "    assert hermes_home.is_relative_to(tmp_path)\n"
        "    assert hermes_profile.settings().profile.home == hermes_home\n"
        "    hermes_profile.memory_manager().initialize_all('s1')\n"
    )
    assert "1 passed" in run_pytest(tmp_path, code)


def test_a_project_that_asks_for_nothing_pays_nothing(tmp_path: Path) -> None:
    """With hermes installed and no fixture used, none of its heavy parts is imported."""
    code = (
        "import sys\n\ndef test_nothing():\n"
        "    heavy = {'dynaconf', 'dependency_injector', 'cattrs', 'typer', 'hermes.settings', 'hermes.containers'}\n"
        "    assert not heavy & set(sys.modules)\n"
    )
    run_pytest(tmp_path, code)
