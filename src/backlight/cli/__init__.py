"""Floor 9: the command line."""
