"""A result requires grad as soon as one of its inputs does."""

import torch

left = torch.randn(2, 2)
right = torch.randn(2, 2)
print(left.requires_grad, right.requires_grad)
total = left + right
print(total.grad_fn)

left = left.requires_grad_()
right = right.requires_grad_()
total = left + right
print(total.grad_fn)
print(total.requires_grad)
