"""Floor 7, next to the models: one adapter for each large library that backlight can use and does not need."""
