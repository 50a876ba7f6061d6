"""Kernels that reduce, sort or scan."""
