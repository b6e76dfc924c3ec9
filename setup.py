"""The folders at the root install inside ``hermes``: ``cli/`` is ``hermes.cli``, and so on.

Plain top-level packages called settings, cli or plugins would shadow somebody's own modules.
"""

from setuptools import find_packages, setup

FOLDERS = ("cli", "containers", "plugins", "settings")

setup(
    packages=[
        *find_packages(include=["hermes", "hermes.*"]),
        *(f"hermes.{name}" for folder in FOLDERS for name in find_packages(include=[folder, f"{folder}.*"])),
    ],
    package_dir={f"hermes.{folder}": folder for folder in FOLDERS},
)
