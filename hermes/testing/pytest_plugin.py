"""Fixtures of pytest that come with hermes. Nothing of hermes is imported until a test asks for one.

``hermes_root``       a ``Hermes`` whose home is a folder of this test's and whose environment is empty
``hermes_home``       that home; it does not exist yet
``hermes_profile``    its profile ``default``, open, closed after the test
``recording_provider``  a memory provider that writes down what it was asked
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hermes.containers import Hermes, OpenProfile
    from hermes.testing import RecordingProvider


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
