"""Kernels of layers and of optimizer steps."""
