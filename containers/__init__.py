"""One container per profile, and the composition root that opens it."""

from hermes.containers.root import Hermes, OpenProfile

__all__ = ["Hermes", "OpenProfile"]
