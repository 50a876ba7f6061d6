"""Batching rules, a file for each family of ops."""
