"""The guide for plugin authors: its blocks of code run, in order, and the Chinese one has the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hermes.plugin_host.discovery import MEMORY, PACKAGE, Places
from hermes.testing.conformance import CHECKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE, CHINESE = DOCS / "plugins.md", DOCS / "zh" / "plugins.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"(?:# |<!-- )([\w./-]+\.\w+)(?: -->)?\n")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of *page*: the language and the code of each."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def shell(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run *code* in a shell in *folder*, as a person would who has hermes on the path."""
    tools = Path(sys.executable).parent
    environ = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder / "person"),
        "HERMES_HOME": str(folder / "person" / ".hermes"),
        "PYTHONSAFEPATH": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        ["sh", "-ec", code], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=110
    )


@pytest.mark.timeout(240)
def test_every_block_of_the_guide_runs(tmp_path: Path) -> None:
    """Blocks with a file name are written to that file, those for the shell are run; each must succeed."""
    (tmp_path / "person").mkdir()
    for language, code in blocks(GUIDE):
        if language == "sh":
            done = shell(code, tmp_path)
            assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
            continue
        named = NAMED.match(code)
        assert named, f"a block of {language} that is neither run nor written to a file:\n{code}"
        file = tmp_path / named[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code if language != "markdown" else code[named.end() :], encoding="utf-8")
    [wheel] = (tmp_path / "postbox" / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    found = Places(search_path=[str(tmp_path / "site")]).find("postbox", MEMORY)
    assert found is not None
    assert (found.source, found.version) == (PACKAGE, "1.0.0")


def test_the_chinese_guide_has_the_same_blocks() -> None:
    """What is run of the one is true of the other."""
    assert blocks(CHINESE) == blocks(GUIDE)


@pytest.mark.parametrize("page", [GUIDE, CHINESE], ids=["english", "chinese"])
def test_the_guide_names_every_check(page: Path) -> None:
    """A check that is added is described."""
    text = page.read_text(encoding="utf-8")
    assert [name for name in CHECKS if f"`{name}`" not in text] == []


def test_both_guides_have_the_same_headings() -> None:
    """As many of each depth, in the same order: nothing is left out of a translation."""
    depths = [
        [
            len(mark)
            for mark in re.findall(r"^(#+) ", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
        ]
        for page in (GUIDE, CHINESE)
    ]
    assert depths[0] == depths[1]
