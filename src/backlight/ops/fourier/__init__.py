"""Fourier transforms: of whole signals, and of their windows."""
