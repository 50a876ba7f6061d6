"""Corrected lines that work: names that exist, safe inputs, a rerun of the corrected script."""
