"""Ops on sparse tensors: NOTE [The sparse layout] in kernels/sparse_array.py."""
