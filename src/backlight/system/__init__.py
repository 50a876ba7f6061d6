"""Floor 0: the process around the engine: locks that survive a fork, imports on first use, warnings to users."""
