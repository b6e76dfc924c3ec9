"""Context engines: what happens when a conversation grows too long for its model."""
