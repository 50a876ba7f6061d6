"""Tensor's methods, a file for each family of ops."""
