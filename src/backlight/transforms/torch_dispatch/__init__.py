"""Calls of ops handled below autograd, by modes and by tensor classes with `__torch_dispatch__`."""
