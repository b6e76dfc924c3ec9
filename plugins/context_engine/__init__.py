"""Context engines that come with hermes."""
