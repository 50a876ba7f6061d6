"""Floor 8: which parts of the input a score depends on."""
