"""A profile whose files a test writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.profiles import Profile

Write = Callable[..., Profile]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty root."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def profile(root: Path) -> Profile:
    """The profile ``work`` below the root; its home exists and is empty."""
    home = root / "profiles" / "work"
    home.mkdir(parents=True)
    return Profile("work", root, home, "test")


@pytest.fixture
def write(profile: Profile) -> Write:
    """Writes the files of the profile: config, common, local, dotenv."""

    def files(
        config: str | bytes | None = None,
        *,
        common: str | None = None,
        local: str | None = None,
        dotenv: str | None = None,
    ) -> Profile:
        paths = profile.paths
        for path, text in (
            (paths.config, config),
            (paths.common, common),
            (paths.local_config, local),
            (paths.dotenv, dotenv),
        ):
            if text is not None:
                path.write_bytes(text.encode() if isinstance(text, str) else text)
        return profile

    return files
