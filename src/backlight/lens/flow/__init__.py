"""What goes on in the layers of a model while it trains."""
