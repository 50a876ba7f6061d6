"""The doctor: mistakes in the use of gradients, found while a program runs; each with evidence, cause and cure."""
