"""Fixtures of pytest that come with hermes. Nothing of hermes is imported until a test asks for one.

``hermes_root``       a ``Hermes`` whose home is a folder of this test's and whose environment is empty
``hermes_home``       that home; it does not exist yet
``hermes_profile``    its profile ``default``, open, closed after the test
``recording_provider``  a memory provider that writes down what it was asked
``hermes_host_modules``  the modules that published plugins import from their host, served for ``hermes_profile``

``pytest --hermes-provider PATH`` adds a test for each check of ``hermes.testing.conformance``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hermes.containers import Hermes, OpenProfile
    from hermes.plugin_host.host import Host
    from hermes.testing import RecordingProvider


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that adds the checks of a provider."""
    parser.getgroup("hermes").addoption(
        "--hermes-provider",
        metavar="PATH",
        action="append",
        default=[],
        help="check the memory provider in the folder PATH against the contract, each rule as a test",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the folder of a plugin such as ``my-notes`` for no package: nothing can import it by that name."""
    if path.name.isidentifier() or not (path / "plugin.yaml").is_file():
        return None
    return pytest.Dir.from_parent(parent, path=path)


@pytest.hookimpl(tryfirst=True)  # before -k and -m choose among the tests
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each check of each provider that was asked for."""
    if folders := config.getoption("--hermes-provider"):
        from hermes.testing.conformance.as_tests import tests_of

        for folder in folders:
            items.extend(tests_of(session, config.invocation_params.dir / folder))


@pytest.fixture
def hermes_home(tmp_path: Path) -> Path:
    """A home below this test's own folder. It does not exist yet."""
    return tmp_path / "hermes-home"


@pytest.fixture
def hermes_root(hermes_home: Path) -> Hermes:
    """The composition root over ``hermes_home``; ``hermes_root.override(...)`` puts a test's parts in."""
    from hermes.containers import Hermes

    return Hermes(environ={}, home=hermes_home)


@pytest.fixture
def hermes_profile(hermes_root: Hermes) -> Iterator[OpenProfile]:
    """The profile ``default`` of ``hermes_root``, open."""
    with hermes_root.open() as profile:
        yield profile


@pytest.fixture
def recording_provider() -> RecordingProvider:
    """A memory provider that writes down what it was asked."""
    from hermes.testing import RecordingProvider

    return RecordingProvider()


@pytest.fixture
def hermes_host_modules(hermes_profile: OpenProfile) -> Iterator[Host]:
    """``agent.memory_manager``, ``hermes_constants`` and the like can be imported; they speak for ``hermes_profile``.

    Names that the project has itself stay its own. What was imported so is forgotten after the test.
    """
    from hermes.compat import finder
    from hermes.compat.profile_host import ProfileHost

    host = ProfileHost(hermes_profile)
    finder.install(host)
    try:
        yield host
    finally:
        finder.uninstall()
