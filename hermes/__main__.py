"""``python -m hermes``: the same command, whatever stands first on PATH."""

from hermes.cli import main

main()
