"""The page on host modules."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.compat import CONTRACT_VERSION, finder
from tests.testing.test_pytest_plugin import run_pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compat.md").read_text("utf-8")


def test_every_module_that_is_served_is_described() -> None:
    """The table names every module and no other, and the page the version of the contract."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])}
    packages = {name for name in finder.names() if any(one.startswith(f"{name}.") for one in finder.names())}
    assert named == set(finder.names()) - (packages - {"plugins.memory"}) - {"plugins.context_engine"}
    assert f"\n{CONTRACT_VERSION}." in PAGE


def test_the_test_in_it_passes(tmp_path: Path) -> None:
    """The test that the page shows passes in a project of somebody else."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "1 passed" in run_pytest(tmp_path, code)
