"""Secrets come from the profile's ``.env``, then from the environment at the start, and never show."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.secrets import Secrets


def test_dotenv_before_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile's own value wins; what the process learns later is not seen."""
    (tmp_path / ".env").write_text("A=mine\nEMPTY=\n")
    secrets = Secrets.of(tmp_path / ".env", {"A": "outer", "B": "outer", "EMPTY": "outer", "NONE": ""})
    monkeypatch.setenv("LATER", "x")
    found = {name: secrets.get(name) for name in ("A", "B", "EMPTY", "NONE", "LATER")}
    assert {name: secret.reveal() for name, secret in found.items() if secret} == {"A": "mine", "B": "outer"}
    assert [found[name] for name in ("EMPTY", "NONE", "LATER")] == [None, None, None]


def test_nothing_shows(tmp_path: Path) -> None:
    """No value is in the text of the collection or of a secret."""
    secrets = Secrets({"A": "hunter2"}, {"B": "hunter3"})
    assert "hunter" not in f"{secrets!r} {secrets} {secrets.get('A')!r} {secrets.get('B')}"


def test_missing_file(tmp_path: Path) -> None:
    """No .env means the environment alone, and none is made."""
    assert Secrets.of(tmp_path / ".env", {}).get("A") is None
    assert not (tmp_path / ".env").exists()
