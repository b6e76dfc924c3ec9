"""The contract of a context engine."""

from hermes.context.engine import ContextEngine

__all__ = ["ContextEngine"]
