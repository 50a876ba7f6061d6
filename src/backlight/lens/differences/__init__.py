"""What of a graph is different after a change."""
