"""A gradient made with create_graph can be differentiated again."""

import torch
import torch.autograd as autograd

side = torch.tensor(3.0, requires_grad=True)
volume = side**3

slope = autograd.grad(volume, side, create_graph=True)
print(f"slope of the cube of 3: {slope[0]}")

curvature = autograd.grad(slope[0], side)
print(f"its slope in turn: {curvature[0]}")
