"""Kernels for a GPU: CUDA C of ours (encoder.cu), and how they are launched."""
