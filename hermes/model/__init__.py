"""The model that a profile talks to, at any OpenAI-compatible endpoint."""

from hermes.model.endpoint import Endpoint

__all__ = ["Endpoint"]
