"""Learning rate schedules, a family a file."""
