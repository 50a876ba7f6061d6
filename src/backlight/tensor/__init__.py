"""Floor 4."""
