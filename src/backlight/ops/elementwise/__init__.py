"""Ops that work element by element."""
