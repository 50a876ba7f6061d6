"""Slips of a line: attributes that nothing reads, values written past the graph, copies that were to be shared."""
