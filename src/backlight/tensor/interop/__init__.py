"""Tensors and other libraries: NumPy's functions, DLPack."""
