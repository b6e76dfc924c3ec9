"""The plugins that come with hermes; each has the same means as one that somebody else wrote."""
