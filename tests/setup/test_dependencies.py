"""What a provider needs beside itself, told from metadata."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
from importlib import metadata
from pathlib import Path

import pytest

from hermes.setup import dependencies
from hermes.setup.dependencies import Program


def distribution(folder: Path, name: str, version: str, *requires: str) -> None:
    """The metadata of an installed package in *folder*, which is on the path."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with two packages: one with an extra that is met, and one that is not."""
    distribution(tmp_path, "some-sdk", "2.3.1", 'fast-part>=1 ; extra == "fast"', 'gone ; extra == "full"')
    distribution(tmp_path, "fast-part", "1.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert metadata.version("some-sdk") == "2.3.1"
    return tmp_path


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ("some-sdk", ""),
        ("Some_SDK>=2,<3", ""),
        ("some-sdk>=3", "2.3.1 is installed"),
        ("some-sdk[fast]", ""),
        ("some-sdk[full]", "gone: it is not installed"),
        ("nobody-has-this", "it is not installed"),
        ("nobody-has-this; python_version < '3'", ""),
        ("some sdk", "it is no requirement"),
    ],
)
def test_a_requirement_is_met_or_not(installed: Path, requirement: str, reason: str) -> None:
    """Names, versions, extras and markers are read as pip reads them; nothing is imported."""
    found = dependencies.missing([requirement])
    assert (found[0].reason if found else "").startswith(reason)
    assert bool(found) is bool(reason)


@pytest.fixture
def no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with one folder on it, empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str = "exit 0") -> Path:
    """An executable in *folder*."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_uv_where_there_is_one_else_pip(no_path: Path) -> None:
    """Packages go into the environment of this interpreter, by uv if it is on PATH."""
    assert dependencies.installing(["some-sdk>=2"]) == [sys.executable, "-m", "pip", "install", "some-sdk>=2"]
    uv = program(no_path, "uv")
    assert dependencies.installing(["a", "b"]) == [
        str(uv),
        "pip",
        "install",
        "--python",
        sys.executable,
        "a",
        "b",
    ]


def test_without_an_installer_the_command_is_for_the_person(
    no_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither uv nor pip, or an environment that cannot be written: nothing is run, the command is said."""
    by_pip = f"{sys.executable} -m pip install 'some-sdk>=2'"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert dependencies.installing(["some-sdk>=2"]) is None
    assert dependencies.by_hand(["some-sdk>=2"]) == by_pip
    monkeypatch.undo()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert dependencies.installing(["some-sdk>=2"]) is None


def test_whether_an_installation_went_well(capfd: pytest.CaptureFixture[str]) -> None:
    """The exit code decides; what the installer prints goes to standard error."""
    assert dependencies.run([sys.executable, "-c", "print('progress')"])
    assert not dependencies.run("exit 3")
    out, errors = capfd.readouterr()
    assert (out, errors) == ("", "progress\n")


def test_programs_are_checked_by_what_the_manifest_says(no_path: Path) -> None:
    """The check is run where there is one, and its exit code counts; else the name is looked for on PATH."""
    works = program(no_path, "works")
    fails = program(no_path, "fails", "exit 1")
    said = [
        {"name": "works", "check": f"{works} --version"},
        {"name": "fails", "check": str(fails), "install": "get fails"},
        {"name": "works"},
        {"name": "nowhere", "check": "nowhere --version"},
        {"install": "nameless"},
        "text",
    ]
    programs = dependencies.programs(said)
    assert [dependencies.is_there(one) for one in programs] == [True, False, True, False]
    assert programs[1] == Program("fails", "get fails", str(fails))
    assert dependencies.programs(None) == ()
