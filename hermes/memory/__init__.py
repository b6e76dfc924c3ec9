"""Memory: the provider contract, the manager, the built-in store and the journal."""
