"""Array functions that are fast in NumPy: no tensors, no graph."""
