"""Kernels of losses and distances."""
