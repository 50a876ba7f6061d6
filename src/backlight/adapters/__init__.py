"""Floor 7, beside the models: the one door to each large library that backlight can work with and does not need."""
