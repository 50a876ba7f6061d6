"""A sum of tensors that require grad prints the function that made it."""

import torch

left = torch.tensor([1.0, 2.0, 3], requires_grad=True)
right = torch.tensor([4.0, 5.0, 6], requires_grad=True)
total = left + right
print(total)
print(total.grad_fn)
