"""Floor 7: tokenizers, encoders, rankers, and the folders that they are read from."""
