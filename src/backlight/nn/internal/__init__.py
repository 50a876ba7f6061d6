"""What modules are made of: registration, hooks, state dicts; and layers that PyTorch has in larger files."""
