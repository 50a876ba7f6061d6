"""requires_grad_ switches recording on for a tensor that exists."""

import torch

grid = torch.randn(2, 2)
print(f"at first: {grid.requires_grad}")
grid.requires_grad_(True)
print(f"then: {grid.requires_grad}")
