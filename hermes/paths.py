"""Where the files of one profile lie. Building a path creates nothing."""

from __future__ import annotations

from pathlib import Path

import attrs


@attrs.frozen
class ProfilePaths:
    """The files of one profile, all below its *home*; *root* holds what the profiles share."""

    root: Path
    home: Path

    @property
    def common(self) -> Path:
        """Settings shared by every profile of this root."""
        return self.root / "common.yaml"

    @property
    def config(self) -> Path:
        """The profile's settings."""
        return self.home / "config.yaml"

    @property
    def local_config(self) -> Path:
        """Settings of this machine, over those of ``config``."""
        return self.home / "config.local.yaml"

    @property
    def dotenv(self) -> Path:
        """The profile's secrets."""
        return self.home / ".env"

    @property
    def memories(self) -> Path:
        """MEMORY.md and USER.md."""
        return self.home / "memories"

    @property
    def pending(self) -> Path:
        """Writes to the built-in memory that wait for approval."""
        return self.home / "pending" / "memory"

    @property
    def journal(self) -> Path:
        """What is still owed to the memory provider."""
        return self.home / "journal.db"

    @property
    def sessions(self) -> Path:
        """Transcripts."""
        return self.home / "sessions.db"

    @property
    def logs(self) -> Path:
        """Logs, rotated."""
        return self.home / "logs"

    @property
    def holds(self) -> Path:
        """One lock file per process that has this profile open for writing."""
        return self.home / "locks"

    @property
    def plugins(self) -> Path:
        """Plugins of this profile."""
        return self.home / "plugins"
