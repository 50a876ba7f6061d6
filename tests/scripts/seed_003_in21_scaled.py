"""Gradients are in proportion to the gradient that backward is given."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
shifted = offset + pair
shifted.backward(torch.tensor([1000.0, 1000.0]))

print("of the offset:", offset.grad)
print("of the pair:", pair.grad)
