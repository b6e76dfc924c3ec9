"""The turn loop: a conversation with a model that remembers."""

from hermes.conversation.conversation import Conversation
from hermes.conversation.turn import Told

__all__ = ["Conversation", "Told"]
