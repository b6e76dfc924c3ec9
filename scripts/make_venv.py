"""Make a virtual environment and install this project in it: ``make_venv.py FOLDER REQUIREMENT``.

Needs Python 3.11 and pip. Where the distribution left ``ensurepip`` out, the pip that there is does the work.
"""

import subprocess
import sys
import venv
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python must be able to say so
    sys.exit(
        f"hermes needs Python 3.11 or later, and {sys.executable} is {sys.version.split()[0]}.\n"
        "Name another: make PYTHON=python3.12"
    )


def main(folder: Path, requirement: str) -> int:
    """Install *requirement*, editable, in the environment at *folder*, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} with Python {sys.version.split()[0]}", flush=True)
        venv.create(folder, clear=folder.exists(), symlinks=True)
    print(f"installing {requirement} in {folder}", flush=True)
    options = ["--disable-pip-version-check", "install", "--quiet", "--editable", requirement]
    return subprocess.run([*_pip(str(python)), *options], check=False).returncode


def _pip(python: str) -> list[str]:
    own = [python, "-m", "pip"]
    for attempt in ([*own, "--version"], [python, "-m", "ensurepip", "--default-pip"]):
        if subprocess.run(attempt, capture_output=True, check=False).returncode == 0:
            return own
    return [sys.executable, "-m", "pip", "--python", python]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
