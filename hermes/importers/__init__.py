"""Reading what other programs remember: their conversations and facts, recognised by content.

Every reader gives the same: messages with an identity that stays the same however often, and however much
later, the file is read again. Memory does not grow with the file.
"""

from hermes.importers.recognise import Format, recognise
from hermes.importers.source import read

__all__ = ["Format", "read", "recognise"]
