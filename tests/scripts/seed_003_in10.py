"""The gradient of a sum is one everywhere."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
result = offset + pair
result = result.sum()
result.backward()

print("of the offset:", offset.grad)
print("of the pair:", pair.grad)
