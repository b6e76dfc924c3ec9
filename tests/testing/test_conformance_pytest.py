"""``pytest --hermes-provider PATH``: each check is a test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hermes.plugin_host import scaffold
from hermes.testing.conformance import CHECKS
from tests.support import python


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the scaffold's provider and one test beside it."""
    scaffold.write("my-notes", tmp_path)
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    return tmp_path


def run(project: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """pytest in *project*."""
    return python("-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *args, cwd=project)


def test_each_check_is_a_test_with_its_name(project: Path) -> None:
    """They stand beside the project's own tests, and can be chosen by name."""
    done = run(project, "--hermes-provider", "my-notes", "--collect-only", "-q", "test_own.py")
    assert done.returncode == 0, done.stdout
    names = [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert names == ["test_own", *CHECKS]
    done = run(project, "--hermes-provider", "my-notes", "-k", "manifest or hooks", "-v", "test_own.py")
    assert "2 passed, 17 deselected" in done.stdout, done.stdout


def test_an_error_fails_the_test_and_shows_the_finding_alone(project: Path) -> None:
    """What is wrong, where, why and how to mend it; no traceback of the kit."""
    code = (project / "my-notes" / "cli.py").read_text()
    (project / "my-notes" / "cli.py").write_text(code.replace("How much", "100 % of how much"))
    done = run(project, "--hermes-provider", "my-notes", "-k", "cli", "test_own.py")
    assert done.returncode == 1
    assert "cli.py:" in done.stdout
    assert "mend: write % as %% in help texts" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_warning_is_a_warning_of_the_test(project: Path) -> None:
    """It passes, and fails where warnings are errors."""
    text = (project / "my-notes" / "plugin.yaml").read_text()
    (project / "my-notes" / "plugin.yaml").write_text(text.replace("  - on_memory_write\n", ""))
    loud = run(project, "--hermes-provider", "my-notes", "-k", "hooks", "test_own.py")
    assert loud.returncode == 1
    done = run(project, "--hermes-provider", "my-notes", "-k", "hooks", "-W", "default", "test_own.py")
    assert done.returncode == 0, done.stdout
    assert "on_memory_write is implemented and not declared" in done.stdout


def test_a_path_without_a_plugin_is_a_usage_error(project: Path) -> None:
    """One line, exit code 4, no test run."""
    done = run(project, "--hermes-provider", "nothing", "test_own.py")
    assert done.returncode == 4, done.stdout
    assert "there is no plugin in" in done.stderr + done.stdout
