"""Where wheels put context engines."""
