"""Which profile is meant: the root, the names, the order of the places where a profile is chosen."""

from __future__ import annotations

from pathlib import Path

import attrs

from hermes.paths import ProfilePaths

DEFAULT = "default"


@attrs.frozen
class Profile:
    """One profile, resolved: nothing about it is looked up again."""

    name: str
    root: Path
    home: Path
    chosen_by: str
    """What decided: ``--profile``, ``HERMES_PROFILE``, ``HERMES_HOME``, ``active_profile`` or ``default``."""

    @property
    def paths(self) -> ProfilePaths:
        """Where its files lie."""
        return ProfilePaths(root=self.root, home=self.home)
