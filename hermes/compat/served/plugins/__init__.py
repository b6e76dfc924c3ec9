"""What plugins import from the folder that plugins lie in."""
