"""What plugins import from their agent."""
