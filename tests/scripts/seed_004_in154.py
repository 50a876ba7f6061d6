"""The gradient of a square is twice the value."""

import torch

left = torch.tensor([1.0, 2.0, 3], requires_grad=True)
right = torch.tensor([4.0, 5.0, 6], requires_grad=True)
total = left**2 + right
whole = total.sum()
whole.backward()
print(left.grad)
