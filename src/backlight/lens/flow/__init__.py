"""Gradient flow through the layers of a model while it trains."""
