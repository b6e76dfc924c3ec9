"""Memory that lasts for AI agents: providers chosen by configuration, one container per profile."""

__version__ = "0.1.0"
