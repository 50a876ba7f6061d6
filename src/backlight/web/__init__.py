"""Floor 9: pages."""
