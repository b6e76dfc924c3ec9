"""Published providers, unmodified, through everything that a person and an agent do with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin_host.corpus import PACKAGES, Environment, Package, environment

PROGRAM = Path(__file__).with_name("lifecycle.py")


@pytest.fixture(
    params=[pytest.param(one, id=one.name, marks=() if one.quick else pytest.mark.long) for one in PACKAGES]
)
def package(request: pytest.FixtureRequest) -> Package:
    """One of the published packages."""
    chosen: Package = request.param
    return chosen


@pytest.fixture
def installed(package: Package, tmp_path: Path) -> Environment:
    """The environment that it is installed in, and its shim in the home of a person of this test."""
    made = environment(tuple(one.requirement for one in PACKAGES))
    plugins = tmp_path / ".hermes" / "plugins"
    plugins.mkdir(parents=True)
    match package.installer:
        case ("link", folder):
            (plugins / package.plugin).symlink_to(made.site / folder)
        case (program, *words):
            given = [word.format(hermes_home=tmp_path / ".hermes") for word in words]
            done = made.run(program, *given, home=tmp_path)
            assert done.returncode == 0, done.stdout + done.stderr
    return made


def led(made: Environment, home: Path, step: str, call: Any = None) -> dict[str, Any]:
    """What a conversation printed."""
    words = [call[0], json.dumps(call[1])] if call else []
    done = made.run("python", str(PROGRAM), step, *words, home=home)
    assert done.returncode == 0, done.stderr
    heard: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return heard


@pytest.mark.timeout(900)  # the first run installs them
def test_the_whole_life_of_a_published_provider(
    package: Package, installed: Environment, tmp_path: Path
) -> None:
    """Found, set up without a terminal, ready, used for a conversation, asked by another process, its commands run."""
    listed = json.loads(installed.hermes("plugins", "list", "--json", home=tmp_path).stdout)["plugins"]
    (entry,) = [one for one in listed if (one["name"], one["kind"]) == (package.plugin, "memory")]
    assert entry["broken"] == ""
    assert entry["source"] == ("profile" if package.installer else "package")

    set_up(package, installed, tmp_path)
    status = json.loads(installed.hermes("memory", "status", "--json", home=tmp_path).stdout)["provider"]
    assert status["name"] == package.plugin
    assert status["state"] == ("ready" if package.available else "unavailable"), status

    heard = led(installed, tmp_path, "first", package.taught)
    assert heard["name"] == (package.calls_itself or package.plugin)
    assert heard["available"] is package.available
    assert heard["state"] == ["ready", "ready"]
    assert heard["written"]["success"] is True
    assert heard["tools"]
    assert (heard["left"], heard["trouble"]) == (package.left, [])
    assert "error" not in (heard["answer"] or {})

    remembered = led(installed, tmp_path, "second", package.asked)
    assert package.recalled in "\n".join(remembered["recalled"])
    assert package.answered in json.dumps(remembered["answer"])
    assert "error" in remembered["unknown"]
    assert remembered["trouble"] == []

    if package.command:
        done = installed.hermes(package.plugin, *package.command, home=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert package.printed in done.stdout


def set_up(package: Package, installed: Environment, home: Path) -> None:
    """Choose the provider: by the setup where that is enough, else by its settings."""
    if package.available and not package.settings:
        done = installed.hermes("memory", "setup", package.plugin, "--no-input", home=home)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "it is the memory provider of 'default'" in done.stdout
        return
    for key, value in {"memory.provider": package.plugin, **package.settings}.items():
        value = value.format(home=home)
        if value.startswith(str(home)):
            Path(value).mkdir()
        done = installed.hermes("config", "set", key, value, home=home)
        assert done.returncode == 0, done.stderr
