"""plugin.yaml as authors write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.plugin_host.manifest import read
from tests.plugin_host.building import plugin
from tests.support import python


def test_what_it_says(tmp_path: Path) -> None:
    """Name, version, description and hooks are fields, everything else is kept as it stands."""
    plugin(
        tmp_path,
        manifest="name: n\nversion: 1.10\ndescription: d\nhooks: [prefetch]\nlicense: MIT\nx: {y: 1}\n",
    )
    found = read(tmp_path)
    assert (found.name, found.version, found.description, found.hooks) == ("n", "1.1", "d", ("prefetch",))
    assert found.extra == {"license": "MIT", "x": {"y": 1}}
    assert not found.problem


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfname: n\nversion: '2'\n",
        b"name: n\r\nversion: '2'\r\n",
        b"# " + b"licence " * 1200 + b"\nname: n\nversion: '2'\n",
    ],
    ids=["byte order mark", "CRLF", "9 KB of licence"],
)
def test_how_files_are_written(tmp_path: Path, raw: bytes) -> None:
    """A byte order mark, other line ends and a long header change nothing."""
    plugin(tmp_path, manifest=raw)
    assert (read(tmp_path).name, read(tmp_path).version) == ("n", "2")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"name: n\ndescription: Memory: the good kind\n", "line 2"),
        (b"name: caf\xe9\n", "cannot be read"),
        (b"- a\n- b\n", "not a mapping"),
        (b"", "not a mapping"),
        (b"when: 2024-13-45\nname: n\n", "cannot be read"),
        (b"[" * 3000, "cannot be read"),
    ],
    ids=["unquoted colon", "another encoding", "a list", "empty", "no date", "too deep"],
)
def test_a_broken_one(tmp_path: Path, raw: bytes, said: str) -> None:
    """A file that cannot be used is empty and says why; nothing raises."""
    plugin(tmp_path, manifest=raw)
    found = read(tmp_path)
    assert said in found.problem
    assert found.name == ""


def test_a_missing_one(tmp_path: Path) -> None:
    """No file is said to be missing."""
    assert "missing" in read(tmp_path).problem


def test_dates_and_dependencies_as_json(tmp_path: Path) -> None:
    """What goes to another process is JSON: a date becomes text; names are taken out of lists of mappings."""
    plugin(
        tmp_path,
        manifest="name: n\nreleased: 2024-05-01\npip_dependencies: [a>=1, b]\nexternal_dependencies:\n  - name: x\n",
    )
    found = read(tmp_path)
    assert found.as_dict()["released"] == "2024-05-01"
    assert found.names("pip_dependencies") == ("a>=1", "b")
    assert found.names("external_dependencies") == ("x",)
    assert found.names("nothing") == ()


def test_utf_8_whatever_the_system_speaks(tmp_path: Path) -> None:
    """A description in UTF-8 is read on a system whose own encoding is another."""
    plugin(tmp_path, manifest="name: n\ndescription: 记忆 für dich\n")
    code = f"""
from pathlib import Path
from hermes.plugin_host.manifest import read
assert read(Path({str(tmp_path)!r})).description == "\\u8bb0\\u5fc6 f\\u00fcr dich"
"""
    done = python("-c", code, env={"PYTHONUTF8": "0", "LANG": "C", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"})
    assert done.returncode == 0, done.stderr
