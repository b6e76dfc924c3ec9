"""What plugins import from the command line of their host."""

from hermes.compat import CONTRACT_VERSION

__version__ = CONTRACT_VERSION
