"""What plugins import from the tools of their host."""
