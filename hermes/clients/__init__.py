"""Other agents on this machine: their settings, and what their hooks say."""
