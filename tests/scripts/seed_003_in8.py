"""The gradient of a mean is shared out evenly."""

import torch

offset = torch.tensor(3.0, requires_grad=True)
pair = torch.tensor([4.0, 2.0], requires_grad=True)
result = offset + pair
result = result.mean()
result.backward()

print("of the offset:", offset.grad)
print("of the pair:", pair.grad)
