"""For tests of providers and of agents that use hermes; installed with it, as fixtures of pytest."""

from hermes.testing.recording import RecordingProvider

__all__ = ["RecordingProvider"]
