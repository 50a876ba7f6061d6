"""Sparse tensors: how they are made, and what each function does with them."""
