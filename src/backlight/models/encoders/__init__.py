"""Encoders, a file for each family of models."""
