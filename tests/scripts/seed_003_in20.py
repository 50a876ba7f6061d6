"""backward from a vector with a large gradient."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
shifted = offset + pair

print(shifted)
shifted.backward(torch.tensor([1000.0, 1000.0]))
