"""Floor 7: tokenisers, encoders, rankers, and the folders that they are read from."""
