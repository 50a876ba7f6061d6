"""Ops that reduce, scan or order elements along dims."""
