"""backward from a vector takes the gradient of what follows it."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
shifted = offset + pair

print(shifted)
shifted.backward(torch.tensor([1.0, 1.0]))
