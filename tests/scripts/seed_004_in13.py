"""Concatenation along the first dim, and a random tensor of three."""

import torch

torch.manual_seed(3)
upper = torch.randn(2, 5)
lower = torch.randn(3, 5)
both = torch.cat([upper, lower])

cube = torch.randn(2, 3, 4)
print(both.shape, cube.shape)
