"""A sum of tensors that do not require grad has no history."""

import torch

left = torch.tensor([1.0, 2.0, 3], requires_grad=False)
right = torch.tensor([4.0, 5.0, 6], requires_grad=False)
total = left + right
print(total)
print(total.grad_fn)
