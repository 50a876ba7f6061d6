"""Learning rate schedules, one file for each family."""
