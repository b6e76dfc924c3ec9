"""Lay ``build-typing/hermes`` out as installed, in links: type checkers do not see setup.py's mapping."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build-typing" / "hermes"

shutil.rmtree(TREE.parent, ignore_errors=True)
TREE.mkdir(parents=True)
for source in [
    *(ROOT / "hermes").iterdir(),
    *(ROOT / name for name in ("cli", "containers", "plugins", "settings")),
]:
    if source.name != "__pycache__":
        (TREE / source.name).symlink_to(source)
(TREE.parent / "tests").symlink_to(ROOT / "tests")
