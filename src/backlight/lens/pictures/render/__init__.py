"""A picture for the terminal, as SVG and for Graphviz."""
