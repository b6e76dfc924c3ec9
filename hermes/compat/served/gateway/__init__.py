"""What plugins import from a gateway; this host has none."""
