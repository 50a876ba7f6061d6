"""backward from a vector with a gradient of ones."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
shifted = offset + pair

shifted.backward(torch.tensor([1.0, 1.0]))
print(offset.grad, pair.grad)
