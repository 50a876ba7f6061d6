"""A record of a graph: what it consists of, how it is made, read and kept."""
