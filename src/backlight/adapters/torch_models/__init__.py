"""Models that PyTorch runs, from a folder or from memory, as scorers."""
