"""detach gives a result without its history."""

import torch

left = torch.randn(2, 2).requires_grad_()
right = torch.randn(2, 2).requires_grad_()
total = left + right

plain = total.detach()
print(plain.grad_fn)
