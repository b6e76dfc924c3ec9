"""This memory for clients of the Model Context Protocol. The protocol's package is imported in ``server`` only."""
